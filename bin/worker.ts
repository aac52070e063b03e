// The entry point of the processes that the primary forks. Their role is in an environment variable.
import { startWorker } from '../src/app.ts';

void startWorker(process.env['COLLAB_ROLE'] ?? '');
