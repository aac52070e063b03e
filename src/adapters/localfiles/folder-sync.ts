import { open } from 'node:fs/promises';

interface Turn {
  readonly current: Promise<void>;
  next: Promise<void> | null;
}

/** Flushes folders, so that names made in them outlast a power cut. Calls that come during a flush share the next one. */
export class FolderSync {
  readonly #turns = new Map<string, Turn>();

  /** Resolves once every name that was made in `folder` before the call is on the disk. */
  sync(folder: string): Promise<void> {
    const turn = this.#turns.get(folder);
    if (turn === undefined) return this.#start(folder);
    turn.next ??= turn.current.then(
      () => this.#start(folder),
      () => this.#start(folder),
    );
    return turn.next;
  }

  #start(folder: string): Promise<void> {
    const turn: Turn = { current: flush(folder), next: null };
    this.#turns.set(folder, turn);
    const over = (): void => {
      if (turn.next === null) this.#turns.delete(folder);
    };
    turn.current.then(over, over);
    return turn.current;
  }
}

async function flush(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
