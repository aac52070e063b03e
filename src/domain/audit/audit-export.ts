import * as Type from 'typebox';
import { CollabError } from '../../model/errors.ts';
import type { AuditHead } from '../../model/environments/audit.ts';
import type { Context } from '../context.ts';
import { InputSchema } from '../input/validate.ts';
import { readHead, readRecords } from './audit.ts';
import { type AuditChain, ChainCheck } from './chain.ts';
import { type ChainVerdict, verifyTexts } from './verify.ts';
import { jsonOrUndefined } from '../input/json.ts';

/** The version of the format of an exported chain. */
const FORMAT = 1;
const PAGE = 500;

const firstLine = new InputSchema(
  Type.Object({
    type: Type.Literal('collab-audit'),
    format: Type.Integer(),
    environmentId: Type.Union([Type.String(), Type.Null()]),
  }),
);
const lastLine = new InputSchema(
  Type.Object({ type: Type.Literal('head'), seq: Type.Integer({ minimum: 0 }), hash: Type.String() }),
);

/** The lines of an export of a chain, without line feeds: a header, the records as they are stored, and the head. */
export async function* exportChain(ctx: Context, chain: AuditChain): AsyncIterable<string> {
  yield JSON.stringify({ type: 'collab-audit', format: FORMAT, environmentId: chain });
  const head = await readHead(ctx.store, chain);
  for (let since = 0; since < head.seq;) {
    const records = await readRecords(ctx, chain, since, Math.min(PAGE, head.seq - since));
    yield* records;
    since += records.length;
    if (records.length === 0) break;
  }
  yield JSON.stringify({ type: 'head', ...head });
}

/**
 * Verifies an exported chain. Throws `invalid_request` if the lines are no such export.
 *
 * @param known as for `verifyChain`
 */
export async function verifyExport(
  lines: AsyncIterable<string>,
  known: readonly AuditHead[],
): Promise<ChainVerdict & { readonly environmentId: AuditChain }> {
  const texts: string[] = [];
  for await (const line of lines) texts.push(line);
  const [first, ...records] = texts;
  const header = parse(first);
  if (!firstLine.check(header))
    throw new CollabError(
      'invalid_request',
      'This is not an export of an audit log: its first line must be {"type":"collab-audit","format":1,…}',
    );
  if (header.format !== FORMAT)
    throw new CollabError(
      'invalid_request',
      `The export has the format ${header.format}; this version reads format ${FORMAT}`,
    );
  const { environmentId } = header;
  const head = parse(records.at(-1));
  if (lastLine.check(head))
    return { environmentId, ...(await verifyTexts(environmentId, records.slice(0, -1), head, known)) };
  const check = new ChainCheck(environmentId);
  const faults = records.flatMap((text) => check.add(text));
  return {
    environmentId,
    head: check.head,
    faults: [...faults, 'the last line, with the head of the log, is missing'],
  };
}

function parse(text: string | undefined): unknown {
  return text === undefined ? undefined : jsonOrUndefined(text);
}
