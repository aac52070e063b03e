import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openLmdbTransfer } from '../../src/adapters/lmdb/transfer/transfer.ts';
import type { InitOutput } from '../helpers/cli.ts';
import { collab } from '../helpers/command.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { blobsOf, fillFolder, folderContent, moveUnderKills, storeOf } from '../helpers/migration.ts';
import { init, newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const KILLS = 2 * CRASH_FACTOR;
const CONFIG = JSON.stringify({ storage: { minFreeMb: 0 } });

/** Two folders: one with data, and one that names where it is to be moved. */
async function folders(t: Test): Promise<{ from: string; to: string; keys: InitOutput }> {
  const [from, to] = [join(tempFolder(t), 'from'), join(tempFolder(t), 'to')];
  mkdirSync(from);
  mkdirSync(to);
  writeFileSync(join(from, 'config.json'), CONFIG);
  writeFileSync(join(to, 'config.json'), CONFIG);
  return { from, to, keys: await newFolder(from) };
}

t.test('a move that is killed at any moment goes on where it ended', { timeout: CRASH_FACTOR * 200_000 }, async (t) => {
  const { from, to, keys } = await folders(t);
  await fillFolder(from, keys.environment.id);
  const before = await folderContent(from);
  let served = 0;
  const killed = await moveUnderKills(t, {
    from,
    to,
    kills: KILLS,
    withinMs: 700,
    // The folder of the target.
    hasBegun: () => readdirSync(to).includes('data'),
    afterKill: async () => {
      const target = await openLmdbTransfer({ path: storeOf(to), minFreeBytes: 0 });
      // Before its state is set there is nothing in it.
      const isMoved = (await target.state()) === undefined && (await target.scan(null)).length > 0;
      await target.close();
      const source = await openLmdbTransfer({ path: storeOf(from), minFreeBytes: 0 });
      const state = await source.state();
      await source.close();
      if (isMoved) t.equal(state?.kind, 'moved', 'a target that can be opened is complete');
      if (state === undefined) served++;
    },
  });
  t.ok(killed > 0, `${killed} kills, ${served} before writes stopped`);
  t.strictSame(await folderContent(to), before, 'everything is there, with epoch and positions');
  t.match(await collab(['env', 'list', '--dir', from]), { code: 2, stderr: /was moved to .*collab migrate --undo/ });
  const copy = await collab(['backup', join(tempFolder(t), 'copy'), '--dir', from]);
  t.match(copy, { code: 2, stderr: new RegExp(`the folder ${storeOf(from)} was moved to`) });
  t.match(await collab(['migrate', '--to', to, '--dir', from, '--yes']), { code: 0, stdout: /was moved to .* before/ });
});

t.test('undo goes back to the old store with another epoch, and does not touch the new one', async (t) => {
  const { from, to } = await folders(t);
  const before = (await folderContent(from)) as { epoch: string; records: unknown };
  t.match(await collab(['migrate', '--undo', '--dir', from, '--yes']), { code: 2, stderr: /was not moved/ });
  t.match(await collab(['migrate', '--to', to, '--dir', from, '--yes']), { code: 0 });
  t.match(await collab(['migrate', '--undo', '--dir', from]), { code: 2, stderr: /Add --yes to confirm/ });
  t.match(await collab(['migrate', '--undo', '--dir', from, '--yes']), { code: 0, stdout: /takes writes again/ });
  const after = (await folderContent(from)) as { epoch: string; records: unknown };
  t.strictSame(after.records, before.records);
  t.not(after.epoch, before.epoch);
  t.strictSame(await folderContent(to), before);
  t.match(
    await collab(['migrate', '--to', to, '--dir', from, '--yes']),
    { code: 2, stderr: /has data that is not of this migration/ },
    'which is no target of the other store any more',
  );
});

t.test('a target that cannot be used is refused in one line, and nothing is written', async (t) => {
  const { from, to, keys } = await folders(t);
  const refused = async (args: readonly string[], stderr: RegExp): Promise<void> => {
    const ended = await collab(['migrate', '--dir', from, ...args]);
    t.match(ended, { code: 2, stderr }, args.join(' '));
    t.notMatch(ended.stderr, / {4}at /, 'without a stack');
  };
  await refused([], /Either --to <config> or --undo is required/);
  await refused(['--to', to, '--undo'], /Either --to/);
  await refused(['--to', join(to, 'none'), '--yes'], /must name a config\.json/);
  await refused(['--to', join(to, 'none', 'config.json'), '--yes'], /no config\.json in/);
  await refused(['--to', tempFolder(t), '--yes'], /no config\.json in/);
  await refused(['--to', from, '--yes'], /names the store that the data is in already/);
  await refused(['--to', to], /needs a confirmation/);
  writeFileSync(join(to, 'config.json'), '{"port":"x"}');
  await refused(['--to', to, '--yes'], /port must be/);
  writeFileSync(join(to, 'config.json'), CONFIG);
  t.strictSame(readdirSync(to), ['config.json']);

  const staged = await blobsOf(to).stage('env_other', 'file_1');
  await staged.commit();
  await refused(['--to', to, '--yes'], /has files, such as env_other\/file_1/);
  const other = join(tempFolder(t), 'other');
  await init(other);
  await refused(['--to', other, '--yes'], /has data that is not of this migration/);

  const { to: another } = await folders(t);
  t.match(await collab(['migrate', '--to', another, '--dir', from, '--prepare']), { code: 0, stdout: /so far/ });
  await refused(['--to', another, '--dir', other, '--yes'], /has an unfinished migration from .*from/);
  t.match(await collab(['env', 'list', '--dir', another]), { code: 2, stderr: /unfinished migration/ });
  t.match(await collab(['migrate', '--undo', '--dir', another]), { code: 2, stderr: /is the target of an unfinished/ });
  t.match(await collab(['env', 'list', '--dir', from]), { code: 0, stdout: new RegExp(keys.environment.id) });
});
