import t from 'tap';
import { Rounds } from '../../src/lib/concurrency/rounds.ts';

t.test('one round runs at a time, and one more for all that asked meanwhile', async (t) => {
  let [running, begun] = [0, 0];
  const ends: (() => void)[] = [];
  const rounds = new Rounds(async () => {
    t.equal(++running, 1);
    begun++;
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
    return false;
  }, 0);
  rounds.ask();
  rounds.ask();
  rounds.ask();
  ends[0]?.();
  while (begun < 2) await new Promise((resolve) => setImmediate(resolve));
  ends[1]?.();
  await rounds.stop();
  t.equal(begun, 2);
});

t.test('a round that has more is followed by another one at once, until it is stopped', async (t) => {
  let begun = 0;
  const rounds: Rounds = new Rounds(() => {
    if (++begun === 3) void rounds.stop();
    return Promise.resolve(true);
  }, 1_000_000);
  rounds.ask();
  while (!rounds.isStopped) await new Promise((resolve) => setImmediate(resolve));
  rounds.ask();
  await rounds.stop();
  t.equal(begun, 3);
});
