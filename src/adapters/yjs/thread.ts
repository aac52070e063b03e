import { parentPort } from 'node:worker_threads';
import type { CrdtOutcome } from '../../ports/crdt.ts';
import { type DocumentOperation, runOperation } from './documents.ts';

// The entry of the worker thread: it posts `ready`, then the outcome of each operation.

if (parentPort === null) throw new Error('this file runs only as a worker thread');
const port = parentPort;

port.on('message', (operation: DocumentOperation) => {
  const startedAt = performance.now();
  const result = runOperation(operation);
  const outcome: CrdtOutcome = { result, ms: performance.now() - startedAt };
  port.postMessage(outcome, typeof result === 'string' ? [] : [result.buffer as ArrayBuffer]);
});
port.postMessage('ready');
