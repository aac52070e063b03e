import t from 'tap';
import { UploadThrottle } from '../../src/http/api/upload-throttle.ts';

/** Runs one chunk of each of three uploads and returns the largest number that were processed at the same time. */
async function mostAtOnce(throttle: UploadThrottle): Promise<number> {
  let running = 0;
  let most = 0;
  const chunk = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
  };
  const upload = async (): Promise<void> => {
    await new Promise(setImmediate);
    await throttle.chunk(chunk);
  };
  await Promise.all([1, 2, 3].map(() => throttle.upload(upload)));
  return most;
}

t.test('chunks are processed at the same time while only uploads are pending', async (t) => {
  const throttle = new UploadThrottle(() => 3);
  t.equal(await mostAtOnce(throttle), 3);
});

t.test('chunks are processed one at a time while other requests are pending', async (t) => {
  const throttle = new UploadThrottle(() => 4);
  t.equal(await mostAtOnce(throttle), 1);
});

t.test('a chunk that fails lets the next one start', async (t) => {
  const throttle = new UploadThrottle(() => 9);
  const failed = throttle.upload(() => throttle.chunk(() => Promise.reject(new Error('the disk is full'))));
  const next = throttle.upload(() => throttle.chunk(() => Promise.resolve('kept')));
  await t.rejects(failed, { message: 'the disk is full' });
  t.equal(await next, 'kept');
});

t.test('there is a pause between two chunks while other requests are pending', async (t) => {
  const throttle = new UploadThrottle(() => 3);
  const order: string[] = [];
  const slow = async (): Promise<void> => {
    const end = performance.now() + 2;
    while (performance.now() < end);
    order.push('chunk');
  };
  const both = Promise.all([throttle.upload(() => throttle.chunk(slow)), throttle.upload(() => throttle.chunk(slow))]);
  const other = new Promise<void>((resolve) => setTimeout(() => resolve(void order.push('other')), 1));
  await Promise.all([both, other]);
  t.same(order, ['chunk', 'other', 'chunk']);
});
