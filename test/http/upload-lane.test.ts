import t from 'tap';
import { UploadThrottle } from '../../src/http/api/upload-throttle.ts';

/** Runs three pieces of three uploads at once and tells how many of them were worked on at a time at most. */
async function mostAtOnce(lane: UploadThrottle): Promise<number> {
  let running = 0;
  let most = 0;
  const piece = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
  };
  const upload = async (): Promise<void> => {
    await new Promise(setImmediate);
    await lane.piece(piece);
  };
  await Promise.all([1, 2, 3].map(() => lane.upload(upload)));
  return most;
}

t.test('uploads alone are worked on all at once', async (t) => {
  const lane = new UploadThrottle(() => 3);
  t.equal(await mostAtOnce(lane), 3);
});

t.test('beside other requests their pieces take turns', async (t) => {
  const lane = new UploadThrottle(() => 4);
  t.equal(await mostAtOnce(lane), 1);
});

t.test('a piece that fails lets the next one in', async (t) => {
  const lane = new UploadThrottle(() => 9);
  const failed = lane.upload(() => lane.piece(() => Promise.reject(new Error('the disk is full'))));
  const next = lane.upload(() => lane.piece(() => Promise.resolve('kept')));
  await t.rejects(failed, { message: 'the disk is full' });
  t.equal(await next, 'kept');
});

t.test('between two pieces beside others there is a rest', async (t) => {
  const lane = new UploadThrottle(() => 3);
  const order: string[] = [];
  const slow = async (): Promise<void> => {
    const end = performance.now() + 2;
    while (performance.now() < end);
    order.push('piece');
  };
  const both = Promise.all([lane.upload(() => lane.piece(slow)), lane.upload(() => lane.piece(slow))]);
  const other = new Promise<void>((resolve) => setTimeout(() => resolve(void order.push('other')), 1));
  await Promise.all([both, other]);
  t.same(order, ['piece', 'other', 'piece']);
});
