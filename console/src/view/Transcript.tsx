import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { joined, receipts } from "../model/receipts.ts";
import { entries } from "../model/record.ts";
import { clean } from "../model/text.ts";
import { clockTime } from "../model/time.ts";
import { concerns, transcript, type Piece, type Speaker } from "../model/transcript.ts";
import { now } from "../state/clock.ts";
import type { Session } from "../state/session.ts";
import { sent } from "../state/steers.ts";
import type { Gap } from "../wire/types.ts";
import { Breakable } from "./parts.tsx";
import { ReceiptLine } from "./Receipt.tsx";
import { useBacklog } from "./SessionPage.tsx";

/** Pieces that are shown at first, and that each further look back adds. */
const SHOWN = 300;
/** How near to its end the transcript must be to follow what is new, in pixels. */
const NEAR = 60;

const SPEAKERS: Record<Speaker, string> = { person: "A person", agent: "Another agent", host: "Handover" };

/** What an agent says and does, and what is said to it. */
export function Transcript({ session, agent }: { session: Session; agent: string }): JSX.Element {
  const [shown, setShown] = useState(SHOWN);
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useBacklog(session, 200);
  const pieces = useComputed(() => transcript(entries(session.log.value, concerns(agent)))).value;
  const known = useComputed(() => receipts(session.log.value.events)).value;
  const visible = pieces.slice(-shown);
  const recorded = new Set(pieces.flatMap((piece) => (piece.kind === "steer" ? [piece.steerId] : [])));
  const own = sent.value.filter((one) => one.session === session.id && one.receipt.agent === agent);
  const pending = own.filter((one) => !recorded.has(one.receipt.steerId));

  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [pieces, pending.length]);

  const scroll = () => {
    const element = box.current;
    if (element === null) return;
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
  };
  return (
    <div
      class="transcript"
      ref={box}
      onScroll={scroll}
      role="log"
      aria-label="Transcript"
      aria-live="off"
      tabIndex={0}
      data-testid="transcript"
    >
      {(pieces.length > shown || session.hasEarlier) && (
        <button
          type="button"
          class="quiet earlier"
          disabled={session.reading.value}
          onClick={() => {
            if (pieces.length > shown) setShown(shown + SHOWN);
            else void session.earlier();
          }}
          data-testid="earlier"
        >
          {session.reading.value ? "Reading…" : "Show what was before"}
        </button>
      )}
      {visible.length === 0 && pending.length === 0 && <p class="muted">Nothing yet.</p>}
      {visible.map((piece) => {
        if (piece.kind !== "steer") return <Plain key={piece.key} session={session} piece={piece} />;
        const mine = own.find((one) => one.receipt.steerId === piece.steerId)?.receipt;
        const record = known.get(piece.steerId);
        const receipt = mine === undefined ? record : joined(mine, record);
        return (
          <div key={piece.key} class={`piece steer from-${piece.from}`}>
            <span class="by">{mine !== undefined ? "You" : SPEAKERS[piece.from]}</span>
            <p class="words">
              <Breakable text={piece.text} />
            </p>
            {receipt !== undefined && <ReceiptLine receipt={receipt} mine={mine !== undefined} />}
          </div>
        );
      })}
      {pending.map((one) => (
        <div key={one.receipt.steerId} class="piece steer from-person">
          <span class="by">You</span>
          <p class="words">
            <Breakable text={clean(one.receipt.text, 8_000)} />
          </p>
          <ReceiptLine receipt={joined(one.receipt, known.get(one.receipt.steerId))} mine sent={one} session={session} />
        </div>
      ))}
    </div>
  );
}

function Plain({ session, piece }: { session: Session; piece: Exclude<Piece, { kind: "steer" }> }): JSX.Element {
  switch (piece.kind) {
    case "text":
      return (
        <p class="piece words said">
          <Breakable text={piece.text} />
        </p>
      );
    case "tool":
      return (
        <p class={piece.ended ? "piece tool" : "piece tool going"}>
          <span class="tool-name">{piece.tool}</span> <span class="tool-summary">{piece.summary}</span>
          {!piece.ended && <span class="muted"> …</span>}
        </p>
      );
    case "note":
      return (
        <p class={`piece note ${piece.tone}`}>
          <time class="muted" dateTime={piece.at}>
            {clockTime(piece.at, now.peek())}
          </time>{" "}
          {piece.text}
        </p>
      );
    case "elided":
      return <p class="piece note muted">{piece.bytes} bytes of text are only in its output file.</p>;
    case "gap":
      return <Missing session={session} gap={piece.gap} />;
  }
}

/** What is not here of the record, and the means to get it. */
export function Missing({ session, gap }: { session: Session; gap: Gap }): JSX.Element {
  const number = gap.to - gap.from + 1;
  return (
    <p class="piece gap" data-testid="gap">
      {number === 1 ? "One event is" : `${number} events are`} missing here: this page was too slow for them.{" "}
      <button type="button" class="text-link" onClick={() => void session.mend(gap)} disabled={session.reading.value}>
        Read them now
      </button>
    </p>
  );
}
