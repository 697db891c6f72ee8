#!/bin/bash
# Records crates/rfb/tests/captures/ anew: real clients against a real Xvnc, through record_rfb.py.
#
#   tests/tools/record_captures.sh VENV OUT_DIR
#
# VENV is a Python virtual environment with vncdotool; noVNC comes from `scripts/install-deps test`.
# Debian packages: tigervnc-standalone-server tigervnc-viewer gvncviewer chromium openbox xterm xdotool xclip.
set -euo pipefail
tools=$(cd "$(dirname "$0")" && pwd)
venv=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d /tmp/cap.XXXXXX)
pids=()
end_session() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    pids=()
}
trap 'end_session; rm -rf "$work"' EXIT

wait_for() { # a command that must succeed within 10 s
    for _ in $(seq 200); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done
    echo "gave up waiting for: $*" >&2
    return 1
}

# One fresh server per session, so that each recording starts from the same screen.
# server NAME SIZE: sets display and socket
server() {
    socket=$work/$1.rfb
    Xtigervnc -displayfd 5 5>"$work/$1.display" -geometry "$2" -depth 24 -rfbport -1 \
        -rfbunixpath "$socket" -rfbunixmode 0600 -SecurityTypes None -nolisten tcp -nolisten local -ac \
        -tst -AllowOverride= -AlwaysShared=1 -AcceptSetDesktopSize=0 -UseBlacklist=0 -noreset \
        2>"$work/$1.log" &
    pids+=($!)
    wait_for test -s "$work/$1.display" -a -S "$socket"
    display=:$(cat "$work/$1.display")
    DISPLAY=$display openbox 2>/dev/null & pids+=($!)
    wait_for xdotool_root "$display"
    DISPLAY=$display xterm -fn 6x10 -geometry 40x12+4+4 -e sh -c 'PS1="$ " exec sh -i' 2>/dev/null & pids+=($!)
    wait_for env DISPLAY="$display" xdotool search --class xterm
    sleep 0.5
}
xdotool_root() { DISPLAY=$1 xdotool getmouselocation; }

# proxy NAME ADDRESS [OPTIONS]: sets proxy
proxy() {
    name=$1 address=$2; shift 2
    python3 "$tools/record_rfb.py" "$address" "$socket" "$out/$name" "$@" &
    proxy=$!
    pids+=("$proxy")
    case $address in
        /*) wait_for test -S "$address" ;;
        *) wait_for listening "$address" ;;
    esac
}
listening() { grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }

novnc() {
    server novnc 320x200
    proxy novnc "$work/novnc.proxy"
    printf 'from the desktop: Grüße' | DISPLAY=$display xclip -selection clipboard & pids+=($!)
    node "$tools/novnc_session.mjs" "$tools/../../target/clients/browser" "$work/novnc.proxy"
    wait "$proxy" || true
}

# tigervnc NAME PROXY_OPTIONS -- VIEWER_OPTIONS
tigervnc() {
    name=$1; shift
    local proxy_options=()
    while [ "$1" != -- ]; do proxy_options+=("$1"); shift; done
    shift
    server "$name" 320x200
    local remote=$display
    proxy "$name" "$work/$name.proxy" "${proxy_options[@]}"
    # The viewer itself runs on a second server with a window manager, and a person's hands are xdotool's.
    Xtigervnc -displayfd 5 5>"$work/$name.seat" -geometry 640x480 -depth 24 -rfbport -1 \
        -rfbunixpath "$work/$name.seat.rfb" -SecurityTypes None -nolisten tcp -ac -noreset 2>/dev/null & pids+=($!)
    wait_for test -s "$work/$name.seat"
    export DISPLAY=:$(cat "$work/$name.seat")
    openbox 2>/dev/null & pids+=($!)
    xtigervncviewer "$@" "$work/$name.proxy" >"$work/$name.viewer" 2>&1 & local viewer=$!
    pids+=("$viewer")
    wait_for xdotool search --name TigerVNC
    sleep 3
    xdotool mousemove 120 120 click 1 sleep 0.3 mousemove 150 140 mousedown 1 mousemove 180 150 mouseup 1
    xdotool click 3 sleep 0.2 key Escape click 4 click 5
    xdotool type --delay 30 'echo Hello, World! {42}'
    xdotool key --delay 60 Return ctrl+c shift+Left F5
    printf 'Grüße, 漢字' | xclip -selection clipboard & pids+=($!)
    sleep 0.5
    # Announces the viewer's clipboard by giving the viewer the focus again, then pastes it.
    xdotool key alt+Tab sleep 0.2 mousemove 130 130 click 1 key --delay 60 shift+Insert Return
    printf 'from the desktop' | DISPLAY=$remote xclip -selection clipboard & pids+=($!)
    sleep 0.5
    xdotool type --delay 30 'ls -l /usr'
    xdotool key Return
    sleep "${SETTLE:-1.5}"
    kill "$viewer"
    wait "$proxy" || true
    unset DISPLAY
}

vncdotool() {
    server vncdotool 200x120
    proxy vncdotool 5972
    printf 'from the desktop' | DISPLAY=$display xclip -selection clipboard & pids+=($!)
    "$venv/bin/vncdo" -s 127.0.0.1::5972 capture "$work/1.png" move 40 40 click 1 pause 0.3 \
        type 'echo hello' key enter key shift-a key ctrl-c mousedown 1 drag 80 60 mouseup 1 click 3 pause 0.2 key esc \
        pause 0.3 capture "$work/2.png"
    wait "$proxy" || true
}

gvnccapture() {
    server gvnccapture 320x200
    proxy gvnccapture 5973
    command gvnccapture -q 127.0.0.1:73 "$work/g.png"
    wait "$proxy" || true
}

for client in ${CLIENTS:-novnc tigervnc tigervnc-lowcolour tigervnc-3.7-slow vncdotool gvnccapture}; do
    echo "recording $client" >&2
    case $client in
        novnc) novnc ;;
        tigervnc) tigervnc tigervnc -- -Shared ;;
        tigervnc-lowcolour) tigervnc tigervnc-lowcolour -- -FullColor=0 -LowColorLevel=1 -AutoSelect=0 -PreferredEncoding=ZRLE ;;
        tigervnc-3.7-slow)  SETTLE=4 tigervnc tigervnc-3.7-slow --version 3.7 --rate 120 -- -Shared ;;
        vncdotool) vncdotool ;;
        gvnccapture) gvnccapture ;;
    esac
    end_session
done
ls -l "$out"/*
