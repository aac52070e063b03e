import t from 'tap';
import { BodyStream } from '../../src/http/core/body-stream.ts';

function streamed(): { stream: BodyStream; flow: string[] } {
  const flow: string[] = [];
  return { stream: new BodyStream({ pause: () => flow.push('pause'), resume: () => flow.push('resume') }), flow };
}

async function textOf(stream: BodyStream): Promise<string> {
  let text = '';
  for (;;) {
    const piece = await stream.read();
    if (typeof piece === 'string') return `${text}${piece}`;
    text += piece.toString('latin1');
  }
}

t.test('bytes are read in order, whenever they arrive', async (t) => {
  const { stream } = streamed();
  const read = textOf(stream);
  const memory = Buffer.from('one');
  stream.push(memory, false);
  memory.fill('x');
  stream.push(Buffer.from(' two'), false);
  await Promise.resolve();
  stream.push(Buffer.alloc(0), false);
  stream.push(Buffer.from(' three '), true);
  t.equal(await read, 'one two three end', 'the memory that was pushed may be reused');
});

t.test('many small chunks are read as few large ones', async (t) => {
  const { stream } = streamed();
  for (let i = 0; i < 1000; i++) stream.push(Buffer.from('0123456789'), i === 999);
  const piece = await stream.read();
  t.equal(piece.length, 10_000);
  t.equal(await stream.read(), 'end');
  t.equal(await stream.read(), 'end');
});

t.test('a client that is faster than the reader is paused', async (t) => {
  const { stream, flow } = streamed();
  const size = 700_000;
  stream.push(Buffer.alloc(size, 'a'), false);
  t.same(flow, []);
  stream.push(Buffer.alloc(size, 'b'), false);
  t.same(flow, ['pause']);
  let read = 0;
  while (read < 2 * size) read += (await stream.read()).length;
  t.equal(read, 2 * size);
  t.equal(flow[1], 'resume');
});

t.test('memory is reused after it was read, and not before', async (t) => {
  const { stream } = streamed();
  stream.push(Buffer.alloc(10, 'a'), false);
  const first = await stream.read();
  stream.push(Buffer.alloc(10, 'b'), false);
  t.equal(String(first), 'a'.repeat(10), 'while it is being read');
  const second = await stream.read();
  t.equal(String(second), 'b'.repeat(10));
  stream.push(Buffer.alloc(10, 'c'), true);
  await stream.read();
  t.equal(await stream.read(), 'end');
});

t.test('a client that goes away ends the stream, even during a read', async (t) => {
  const { stream } = streamed();
  const waiting = stream.read();
  stream.abandon();
  t.equal(await waiting, 'aborted');
  stream.push(Buffer.from('late'), true);
  t.equal(await stream.read(), 'aborted');
});
