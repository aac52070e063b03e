import { syncPath } from '../../lib/files/durable-files.ts';

/** The running flush of a folder, and the one that is planned after it. */
interface Flushes {
  readonly current: Promise<void>;
  next: Promise<void> | null;
}

/** Flushes folders, so that names created in them survive a power cut. Calls during a flush share the next one. */
export class FolderSync {
  readonly #flushes = new Map<string, Flushes>();

  /** Resolves once every name that was created in `folder` before the call is on disk. */
  sync(folder: string): Promise<void> {
    const running = this.#flushes.get(folder);
    if (running === undefined) return this.#start(folder);
    running.next ??= running.current.then(
      () => this.#start(folder),
      () => this.#start(folder),
    );
    return running.next;
  }

  #start(folder: string): Promise<void> {
    const started: Flushes = { current: syncPath(folder), next: null };
    this.#flushes.set(folder, started);
    const cleanUp = (): void => {
      if (started.next === null) this.#flushes.delete(folder);
    };
    started.current.then(cleanUp, cleanUp);
    return started.current;
  }
}
