import { parentPort } from 'node:worker_threads';
import type { CrdtOutcome } from '../../ports/crdt.ts';
import { doDocumentWork, type DocumentWork } from './documents.ts';

// The entry of the worker thread: it says when it is ready, then answers each piece of work.

if (parentPort === null) throw new Error('this file runs as a worker thread only');
const port = parentPort;

port.on('message', (work: DocumentWork) => {
  const begun = performance.now();
  const result = doDocumentWork(work);
  const outcome: CrdtOutcome = { result, ms: performance.now() - begun };
  port.postMessage(outcome, typeof result === 'string' ? [] : [result.buffer as ArrayBuffer]);
});
port.postMessage('ready');
