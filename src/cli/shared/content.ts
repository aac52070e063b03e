import type { Command } from 'commander';
import type { Config } from '../../config/schema.ts';
import { type BackendActor, operatorActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { findEnvironment } from '../../domain/environments/environments.ts';
import { parseJson } from '../../domain/input/json.ts';
import { CollabError } from '../../model/errors.ts';
import { usageFailure } from '../failure.ts';
import type { Invocation } from './invocation.ts';
import { withStore } from './open-store.ts';

/** The most bytes of a text on standard input: as many as the largest text of a comment can have. */
const MAX_INPUT_BYTES = 4 * 1024 * 1024;

/** The options of commands that write a comment, or a thread with its first comment. */
export interface ContentOptions {
  readonly body?: string;
  readonly mention?: readonly string[];
  readonly attach?: readonly string[];
  readonly metadata?: string;
  readonly position?: string;
}

/** The option that sets a field of the body of the same request over HTTP. */
const optionOfField: Readonly<Record<string, string>> = {
  roomId: 'room',
  userId: 'user',
  body: 'body',
  mentions: 'mention',
  attachmentIds: 'attach',
  metadata: 'metadata',
  position: 'position',
};

/** Adds the options for the text of a comment, its mentions, files and metadata. */
export function addContentOptions(command: Command, metadata: string): Command {
  return command
    .requiredOption('--body <text>', 'Text; "-" reads standard input, without the line breaks at its end.')
    .option('--mention <id>', 'User to mention; give it once for each.', append)
    .option('--attach <id>', 'Upload to link; give it once for each.', append)
    .option('--metadata <json>', metadata);
}

/**
 * The body of the same request over HTTP, without its author. The domain checks it.
 *
 * @throws {CollabError} naming an option that is not JSON
 * @throws {Failure} for standard input that is too long or not text
 */
export async function contentInput({
  body,
  mention,
  attach,
  metadata,
  position,
}: ContentOptions): Promise<Record<string, unknown>> {
  return {
    ...(metadata !== undefined && { metadata: parseJson(metadata, '--metadata') }),
    ...(position !== undefined && { position: parseJson(position, '--position') }),
    ...(mention !== undefined && { mentions: mention }),
    ...(attach !== undefined && { attachmentIds: attach }),
    // Last, because it may have to be typed.
    ...(body !== undefined && { body: body === '-' ? await readText() : body }),
  };
}

/**
 * Runs `work` as the operator in an environment, with the filters of plugins. A refusal of a field names the option
 * that set it.
 */
export async function writeContent<T>(
  at: Invocation,
  env: string,
  work: (ctx: Context, actor: BackendActor, config: Config) => Promise<T>,
): Promise<T> {
  return withStore(at, async (ctx, config) => {
    const actor = operatorActor(await findEnvironment(ctx, env));
    const { withFilters } = await import('./with-filters.ts');
    return withFilters(ctx, config, undefined, (filters) =>
      namingOptions(() => work({ ...ctx, filters }, actor, config)),
    );
  });
}

async function namingOptions<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CollabError ? namingOption(error) : error;
  }
}

function namingOption(error: CollabError): CollabError {
  const named = Object.entries(optionOfField).find(([field]) => refuses(error, field));
  if (named === undefined) return error;
  const [field, option] = named;
  return new CollabError(error.code, `--${option}${error.message.slice(field.length)}`);
}

/** Whether an error refuses a field of a body: its message begins with a path in the field, e.g. `position.x must be …`. */
const refuses = ({ message }: CollabError, field: string): boolean =>
  message.startsWith(field) && [' ', '.', '['].includes(message.charAt(field.length));

function append(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}

async function readText(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).byteLength;
    if (size > MAX_INPUT_BYTES)
      throw usageFailure(`--body must be at most ${MAX_INPUT_BYTES} bytes of standard input.`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/[\r\n]+$/, '');
  } catch {
    throw usageFailure('--body must be UTF-8, but standard input is not.');
  }
}
