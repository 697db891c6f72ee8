/**
 * What is said on the wire, as far as the app uses it. `docs/protocol.md` describes it; members that are not
 * named here are passed over. Times are RFC 3339 texts, durations milliseconds.
 */

export type Control = "agent" | "human" | "paused";
export type Phase = "steady" | "draining" | "returning";
export type PauseReason = "requested" | "foreign_connection" | "display_unavailable" | "desktop_gone";
export type End = "return" | "cancelled" | "timeout" | "revoked" | "recovered";

export type AgentStatus =
  | "queued"
  | "starting"
  | "running"
  | "waiting"
  | "done"
  | "failed"
  | "aborted"
  | "cancelled-before-start"
  | "interrupted";

/** `attach.json`, by which hosts are found. */
export interface Manifest {
  sessionId: string;
  name: string;
  projectDir: string;
  pid: number;
  updatedAt: string;
  agents: { id: string; type: string; status: AgentStatus; parent: string | null }[];
  desktops: { id: string; control: Control }[];
}

/** A live lease, as others see it. */
export interface LeaseView {
  leaseId: string;
  holder: string;
  since: string;
  expiresInMs: number;
  viewer: string | null;
  viewerConnected?: boolean;
  private?: boolean;
}

export interface DesktopView {
  id: string;
  /** As `1280x800`. */
  size: string;
  control: Control;
  phase: Phase;
  epoch: number;
  lease?: LeaseView;
}

export interface AgentView {
  id: string;
  name: string;
  type: string;
  status: AgentStatus;
  parent: string | null;
  depth: number;
  task: string;
  startedAt: string | null;
  outputFile: string | null;
  pending: number;
  notSteerable?: string;
  /** What its model has read and written so far, where its program says so. */
  tokens?: { input: number; output: number };
}

export interface RequestView {
  requestId: string;
  desktop?: string;
  agent?: string;
  reason: string;
  question?: string;
  state: "open" | "taken" | "handed_back" | "answered" | "cancelled";
  since: string;
}

export interface ListResult {
  session: string;
  desktops: DesktopView[];
  agents: AgentView[];
  requests: RequestView[];
}

export interface HandBack {
  end: End;
  holder: string;
  heldMs: number;
  note: string | null;
  epoch: number;
  screenshot: string | null;
}

export interface ControlStatus {
  desktop: string;
  control: Control;
  phase: Phase;
  epoch: number;
  lease?: LeaseView;
  pauseReason?: PauseReason;
  lastHandBack?: HandBack;
  requests: RequestView[];
}

/** Result of `control.acquire`, `control.reclaim` and a granted `control.request`. */
export interface Grant {
  leaseId: string;
  token: string;
  epoch: number;
  ttlMs: number;
  heartbeatMs: number;
  expiresInMs: number;
  foreignClients: { pid: number | null; command: string | null }[];
}

export interface ReturnResult {
  reason: End;
  heldMs: number;
  screenshot: string | null;
  epoch: number;
}

export type SteerState =
  | "accepted"
  | "handed"
  | "queued"
  | "inserted"
  | "sent"
  | "answered"
  | "dropped"
  | "unknown";
export type SteerWhen = "now" | "next_step" | "turn_end";

export interface SteerResult {
  steerId: string;
  state: SteerState;
  reason?: string;
}

export interface AbortResult {
  id: string;
  status: AgentStatus;
  descendants: { id: string; status: AgentStatus }[];
  survivors: number[];
}

export interface AgentResult {
  id: string;
  status: AgentStatus;
  text: string;
  error?: string;
  finishedAt?: string;
}

export interface StopAllResult {
  desktops: DesktopView[];
  agents: { id: string; status: AgentStatus }[];
}

export type Source = "human" | "agent" | "app" | "host";

/** One event of the record: these members, and by kind others. */
export interface Event {
  seq: number;
  at: string;
  kind: string;
  source: Source;
  actor: { uid: number; pid: number; agent?: string; via: string; evidence?: string };
  desktop?: string;
  epoch?: number;
  agent?: string;
  [field: string]: unknown;
}

export interface JournalResult {
  events: Event[];
  next: number;
  head: string;
}

export interface Gap {
  from: number;
  to: number;
}

export interface LeaseWarning {
  leaseId: string;
  limit: "idle" | "maximum";
  leftMs: number;
}

export interface LeaseRequest {
  leaseId: string;
  from: string;
  note: string | null;
}

/** What a `lease_request` told of is over: answered, out of time, or withdrawn. */
export interface LeaseRequestEnded {
  leaseId: string;
  from: string;
}

export interface LeaseEnded {
  leaseId: string;
  desktop: string;
  end: End;
  agents: string[];
  requests: string[];
}

/** What this browser may see: everything, or one desktop until a time. */
export type Scope =
  | { kind: "all" }
  | { kind: "desktop"; session: string; desktop: string; expiresAt: string };

/** What the server says at the beginning and whenever hosts come, change or go. */
export interface Sessions {
  sessions: Manifest[];
  scope: Scope;
  version: string;
  home?: string;
  /** What its clock shows. */
  now?: string;
}
