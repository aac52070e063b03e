import { spawnSync } from 'node:child_process';
import t from 'tap';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/main.ts';
import { blocksOf, type DocumentCode, documents, inlineCode } from '../helpers/code-blocks.ts';
import { readSource } from '../helpers/sources.ts';

/** Where a call of the program begins, in a line of a shell or in prose. */
const CALL = /(?:^|[\s(/=])collab (?=[a-z])(?!collab )/g;
/** One word of a command line; a bar with a space after it, a redirection and the end of the command are none. */
const WORD = /\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|\$\([^)]*\)|<[^<>\s][^<>]*>|\|(?=\S)|[^\s"'<>|;&()`])+)/y;

t.test('every command of a shell block names a command and its options, with all that is required', async (t) => {
  const lines = documents.flatMap((path) =>
    blocksOf(path)
      .filter(({ language }) => language === 'sh')
      .flatMap(linesOf),
  );
  const calls = lines.flatMap(callsOf);
  t.ok(calls.length > 100);
  t.strictSame(await faultsOf(calls, true), []);
});

t.test('every command in prose names a command and its options', async (t) => {
  const calls = documents.flatMap((path) => inlineCode(path).flatMap(callsOf));
  t.ok(calls.length > 50);
  t.strictSame(await faultsOf(calls, false), []);
});

t.test('every shell block is valid syntax', (t) => {
  const blocks = documents.flatMap((path) => blocksOf(path).filter(({ language }) => language === 'sh'));
  const faults = blocks
    .map(({ at, text }) => ({ at, ...spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' }) }))
    .filter(({ status }) => status !== 0);
  t.strictSame(
    faults.map(({ at, stderr }) => `${at}: ${stderr}`),
    [],
  );
  t.end();
});

t.test('every npm script that a document runs exists', (t) => {
  const { scripts } = JSON.parse(readSource('package.json')) as { scripts: Record<string, string> };
  const named = documents.flatMap((path) =>
    [...readSource(path).matchAll(/\bnpm run (?:--?\S+ )*([\w:-]+)/g)].map(([, name = '']) => `${path}: ${name}`),
  );
  t.ok(named.length > 0);
  t.strictSame(
    named.filter((line) => !Object.hasOwn(scripts, line.split(': ')[1] ?? '')),
    [],
  );
  t.end();
});

t.test('a wrong command is noticed', async (t) => {
  const faults = async (text: string, complete = true): Promise<string[]> =>
    faultsOf(callsOf({ at: 'x', text }), complete);
  t.strictSame(await faults('sudo -u collab /opt/collab/bin/collab key create --env default --kind secret | tail'), []);
  t.strictSame(await faults('echo "$(collab webhook add --env default --url http://127.0.0.1/)" && collab status'), []);
  t.match(await faults('collab webhook add --env default'), [/required option '--url/]);
  t.match(await faults('collab key make'), [/no command make/]);
  t.match(await faults('collab key list --environment default'), [/unknown --environment/]);
  t.match(await faults('collab key list'), [/required option '--env/]);
  t.match(await faults('collab env show'), [/missing <slug>/]);
  t.match(await faults('collab env show a b'), [/too many arguments/]);
  t.match(await faults('collab key create --env default --kind'), [/argument missing/]);
  t.strictSame(await faults('collab key create --kind', false), []);
  t.strictSame(await faults('collab env show', false), []);
  t.match(await faults('collab key create|make', false), [/no command make/]);
});

/** The lines of a block; one that ends in a backslash goes on. */
function linesOf({ at, text }: DocumentCode): DocumentCode[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => ({ at, text: line }));
}

/**
 * The words of each call of the program in a text. A choice (`room list|show`) is several calls, and what is optional
 * is given.
 */
function callsOf({ at, text }: DocumentCode): (DocumentCode & { readonly words: readonly string[] })[] {
  return [...text.matchAll(CALL)].flatMap(({ 0: found, index }) => {
    const words = wordsOf(text.slice(index + found.length).replaceAll(/[[\]](?=\s|$|--)/g, ''));
    const choice = words.slice(0, 2).findIndex((word) => word.includes('|'));
    const each = choice < 0 ? [words] : (words[choice] ?? '').split('|').map((word) => words.with(choice, word));
    return each.map((chosen) => ({ at, text: `collab ${chosen.join(' ')}`, words: chosen }));
  });
}

function wordsOf(text: string): string[] {
  const words: string[] = [];
  WORD.lastIndex = 0;
  for (let found = WORD.exec(text); found !== null; found = WORD.exec(text))
    words.push((found[1] ?? '').replaceAll(/^["']|["']$/g, ''));
  return words;
}

async function faultsOf(calls: ReturnType<typeof callsOf>, complete: boolean): Promise<string[]> {
  const faults = new Map<string, string | null>();
  for (const { text, words } of calls) if (!faults.has(text)) faults.set(text, await faultOf(words, complete));
  return calls
    .map(({ at, text }) => ({ line: `${at}: ${text}`, fault: faults.get(text) }))
    .filter(({ fault }) => fault !== null)
    .map(({ line, fault }) => `${line}: ${fault}`);
}

/** Why commander would refuse the words; null if it would not. `complete`: whether what is required must be there. */
async function faultOf(words: readonly string[], complete: boolean): Promise<string | null> {
  try {
    // With --json, commander prints nothing.
    let command: Command = await createProgram([...words, '--json']);
    let { operands, unknown } = command.parseOptions([...words]);
    for (let next = named(command, operands[0]); next !== undefined; next = named(command, operands[0])) {
      const parsed = next.parseOptions(unknown);
      command = next;
      operands = [...operands.slice(1), ...parsed.operands];
      unknown = parsed.unknown;
    }
    const { registeredArguments, options } = command;
    if (command.commands.length > 0) return operands[0] === undefined ? null : `no command ${operands[0]}`;
    if (unknown.length > 0) return `unknown ${unknown[0]}`;
    if (operands.length > registeredArguments.length) return 'too many arguments';
    if (!complete) return null;
    const missing = registeredArguments.slice(operands.length).find(({ required }) => required);
    if (missing !== undefined) return `missing <${missing.name()}>`;
    const option = options.find((each) => each.mandatory && command.getOptionValue(each.attributeName()) === undefined);
    return option === undefined ? null : `required option '${option.flags}'`;
  } catch (error) {
    // Prose names an option without its value.
    return !complete && (error as { code?: string }).code === 'commander.optionMissingArgument'
      ? null
      : (error as Error).message;
  }
}

function named(command: Command, name: string | undefined): Command | undefined {
  return command.commands.find((each) => each.name() === name);
}
