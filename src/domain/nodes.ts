import type { Context } from './context.ts';
import { jsonOrUndefined } from './input/json.ts';
import { isRecord } from './input/validate.ts';

/** What a worker says of the server that runs it. */
export interface NodeFacts {
  /** Names the server among the nodes that share its store; unique over machines and restarts. */
  readonly node: string;
  /** Names the worker in the server: `web-1`. */
  readonly worker: string;
  /** The name of the machine. */
  readonly host: string;
  /** The version of Collab. */
  readonly version: string;
  /** When the server was started, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/** A server that shares the store. */
export interface Node extends Omit<NodeFacts, 'worker'> {
  /** Its web workers, sorted. */
  readonly workers: readonly string[];
}

/** The key of the records in shared memory that name the nodes. */
const NODES = 'nodes';

/** Says in shared memory that a worker serves, for as long as its owner has a lease. */
export function announceNode(ctx: Context, owner: string, facts: NodeFacts): Promise<void> {
  return ctx.shared.put({ key: NODES, name: owner, owner, text: JSON.stringify(facts) });
}

/** Returns the nodes whose web workers have a lease, by name of the machine and then by start. */
export async function listNodes(ctx: Context): Promise<Node[]> {
  const nodes = new Map<string, Node & { workers: string[] }>();
  for (const { text } of await ctx.shared.list(NODES)) {
    const facts = parseFacts(text);
    if (facts === null) continue;
    const { worker, ...rest } = facts;
    const node = nodes.get(facts.node);
    if (node === undefined) nodes.set(facts.node, { ...rest, workers: [worker] });
    else node.workers.push(worker);
  }
  const found = [...nodes.values()];
  for (const { workers } of found) workers.sort();
  return found.sort((one, other) =>
    one.host < other.host ? -1 : one.host > other.host ? 1 : one.startedAt - other.startedAt,
  );
}

/** Null for what another version, or somebody else, has written in another form. */
function parseFacts(text: string): NodeFacts | null {
  const found = jsonOrUndefined(text);
  if (!isRecord(found)) return null;
  const { node, worker, host, version, startedAt } = found;
  const isComplete = [node, worker, host, version].every((fact) => typeof fact === 'string');
  return isComplete && typeof startedAt === 'number' ? (found as unknown as NodeFacts) : null;
}
