//! `handover browser mcp` runs the `chrome-devtools-mcp` that this program was built with, and nothing that a
//! registry gives out under its name.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use serde_json::json;

use crate::support::{LONG, Outcome, Place, Running};

/// The package that is asked for.
const NAME: &str = "chrome-devtools-mcp";

/// What its lock file says of it.
fn pinned() -> serde_json::Value {
    let lock = include_str!("../crates/handover/src/browser/chrome-devtools-mcp/package-lock.json");
    let lock: serde_json::Value = serde_json::from_str(lock).expect("JSON");
    lock["packages"][format!("node_modules/{NAME}")].clone()
}

/// A package of the same name and version whose program, if it ever runs, leaves the file `ran` in `place`.
fn other_package(place: &Path, version: &str) -> Vec<u8> {
    let root = place.join("package");
    let program = root.join("build/src/bin");
    std::fs::create_dir_all(&program).expect("a directory");
    let ran = place.join("ran");
    let script = format!(
        "require('fs').writeFileSync({:?}, '')\n",
        ran.display().to_string()
    );
    std::fs::write(program.join(format!("{NAME}.js")), &script).expect("a file");
    let manifest = json!({
        "name": NAME,
        "version": version,
        "scripts": {"install": format!("touch {}", ran.display())},
    });
    std::fs::write(root.join("package.json"), manifest.to_string()).expect("a file");
    let mut tar = std::process::Command::new("tar");
    let tar = tar.arg("-C").arg(place).args(["-cz", "package"]).output();
    tar.expect("tar").stdout
}

/// A registry on the loopback interface that gives `package` out as that version, with the hash `integrity`.
/// Its address. It lives as long as the test's process.
fn registry(package: Vec<u8>, version: &str, integrity: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let mut dist = json!({"tarball": format!("{address}/package.tgz")});
    if let Some(integrity) = integrity {
        dist["integrity"] = json!(integrity);
    }
    let one = json!({"name": NAME, "version": version, "dist": dist});
    let about = json!({"name": NAME, "dist-tags": {"latest": version}, "versions": {version: one}});
    let answers = Arc::new((about.to_string().into_bytes(), package));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            // Whoever has hung up needs no answer.
            thread::spawn(move || answer(stream, &answers));
        }
    });
    address
}

fn answer(mut stream: TcpStream, (about, package): &(Vec<u8>, Vec<u8>)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let body = match first.split(' ').nth(1) {
        Some("/package.tgz") => package,
        _ => about,
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

fn runs(place: &Place) -> Outcome {
    Running::start(place.handover().args(["browser", "mcp"])).finish(LONG)
}

#[test]
fn a_package_that_has_not_the_pinned_hash_is_not_installed() {
    let pinned = pinned();
    let version = pinned["version"].as_str().expect("a version");
    let right = pinned["integrity"].as_str().expect("a hash");
    let other = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
    // The registry names no hash, says that it is the pinned one, or owns to another.
    for says in [None, Some(right), Some(other)] {
        let mut place = Place::new();
        let package = other_package(place.path(), version);
        place.set("npm_config_registry", registry(package, version, says));
        let cache = place.path().join("npm");
        place.set("npm_config_cache", cache);
        place.set("npm_config_fetch_retries", "0");
        place.set("NO_PROXY", "127.0.0.1");
        let data = place.path().join("data");
        place.set("XDG_DATA_HOME", &data);
        // Nor does it at the second try, with what the first has left.
        for _ in 0..2 {
            let outcome = runs(&place);
            assert_eq!(outcome.code, 1, "{outcome:?}");
            assert!(outcome.err.contains("EINTEGRITY"), "{outcome:?}");
            let said = format!("{}{}", outcome.out, outcome.err);
            assert!(said.contains("must have the hashes"), "{said}");
            assert!(!place.path().join("ran").exists(), "it ran: {says:?}");
            let installed = data.join("handover").join(NAME);
            assert!(!installed.join("installed").exists(), "{says:?}");
            assert!(
                !installed.join("node_modules").join(NAME).exists(),
                "{says:?}"
            );
        }
    }
}
