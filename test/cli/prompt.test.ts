import { PassThrough } from 'node:stream';
import t from 'tap';
import { Failure } from '../../src/cli/failure.ts';
import { askPassword, confirmDestruction } from '../../src/cli/terminal/prompt.ts';

const question = { warning: 'This deletes everything.', answer: 'staging', yes: false };

function terminal(isTTY: boolean): { input: PassThrough & { isTTY: boolean }; output: PassThrough } {
  return { input: Object.assign(new PassThrough(), { isTTY }), output: new PassThrough() };
}

/** All that has been written and not read yet: from Node 26 on, `read` returns one chunk. */
function readAll(output: PassThrough): string {
  let text = '';
  for (let chunk: unknown = output.read(); chunk !== null; chunk = output.read()) text += String(chunk);
  return text;
}

t.test('resolves when the required answer is typed', async (t) => {
  const { input, output } = terminal(true);
  const asked = confirmDestruction(question, { input, output });
  input.write('staging\n');
  await t.resolves(asked);
  t.match(readAll(output), /This deletes everything\.\nType staging to continue:/);
});

t.test('rejects any other answer, and an empty one', async (t) => {
  for (const answer of ['y\n', '\n', 'stagin\n']) {
    const { input, output } = terminal(true);
    const asked = confirmDestruction(question, { input, output });
    input.write(answer);
    await t.rejects(asked, { message: 'Nothing was changed.', exitCode: 1 });
  }
});

t.test('rejects when the terminal is closed without an answer', async (t) => {
  const { input, output } = terminal(true);
  const asked = confirmDestruction(question, { input, output });
  input.end();
  await t.rejects(asked, { message: 'Nothing was changed.', exitCode: 1 });
});

t.test('without a terminal it refuses, and says how to confirm', async (t) => {
  const refused: unknown = await confirmDestruction(question, terminal(false)).catch((error: unknown) => error);
  t.ok(refused instanceof Failure);
  t.match(refused, { exitCode: 2, remedies: ['Add --yes to confirm.'] });
});

t.test('with --yes nothing is asked', async (t) => {
  const { input, output } = terminal(false);
  await t.resolves(confirmDestruction({ ...question, yes: true }, { input, output }));
  t.equal(output.read(), null);
});

/** Types an answer after each question, and records what the terminal showed. */
function typing({ input, output }: { input: PassThrough; output: PassThrough }, answers: string[]): { shown: string } {
  const seen = { shown: '' };
  output.on('data', (text: Buffer) => {
    seen.shown += String(text);
    if (String(text).endsWith(': ')) setImmediate(() => input.write(`${answers.shift()}\n`));
  });
  return seen;
}

t.test('a password is asked for twice and not shown', async (t) => {
  const asked = terminal(true);
  const seen = typing(asked, ['correct horse', 'correct horse']);
  t.equal(await askPassword(asked), 'correct horse');
  t.equal(seen.shown, 'Password (at least 12 characters): \nRepeat the password: \n');
});

t.test('two passwords that differ are refused', async (t) => {
  const asked = terminal(true);
  typing(asked, ['correct horse', 'correct house']);
  await t.rejects(askPassword(asked), { message: 'The two passwords differ. Nothing was changed.' });
});

for (const [name, key, ends] of [
  ['Ctrl-C', '\u0003', { name: 'InterruptedError', exitCode: 130 }],
  ['Ctrl-D', '\u0004', { name: 'Failure', exitCode: 1, message: 'Nothing was changed.' }],
] as const) {
  t.test(`${name} is not taken as a password, and restores the terminal`, async (t) => {
    // Ctrl-D within a line deletes a character.
    for (const before of name === 'Ctrl-C' ? ['', 'half'] : ['']) {
      const { input, output } = terminal(true);
      const modes: boolean[] = [];
      const raw = Object.assign(input, { setRawMode: (mode: boolean) => void modes.push(mode) });
      const asked = askPassword({ input: raw, output });
      input.write(before + key);
      await t.rejects(asked, ends);
      t.strictSame(modes, [true, false]);
      t.equal(readAll(output), 'Password (at least 12 characters): \n', 'it does not ask again');
    }
  });
}

t.test('Ctrl-C is not taken as an answer', async (t) => {
  const { input, output } = terminal(true);
  const asked = confirmDestruction(question, { input, output: Object.assign(output, { isTTY: true, columns: 80 }) });
  input.write('staging\u0003');
  await t.rejects(asked, { name: 'InterruptedError', exitCode: 130 });
});

t.test('without a terminal no password is asked for', async (t) => {
  const refused: unknown = await askPassword(terminal(false)).catch((error: unknown) => error);
  t.match(refused, { exitCode: 2, remedies: ['Pass it with --password <text>.'] });
});
