import type { Bus } from '../../ports/bus.ts';

/** The line that a bus hints through. */
export interface HintLine {
  /** Sends one hint; `sent` is called once it has left this process. */
  send(position: number, sent: () => void): void;
  /** Calls `listener` for each hint from the other end. Returns the way to stop. */
  listen(listener: (position: number) => void): () => void;
}

/**
 * A bus over the line to the primary, which relays. At most one hint is under way: what is announced meanwhile goes as
 * one hint after it, so a slow primary costs no memory.
 */
export function ipcBus(line: HintLine): Bus {
  let announced = 0;
  let told = 0;
  let underWay = false;

  const send = (): void => {
    told = announced;
    line.send(told, () => {
      underWay = false;
      if (announced > told) plan();
    });
  };
  const plan = (): void => {
    underWay = true;
    setImmediate(send);
  };

  return {
    announce(position) {
      announced = Math.max(announced, position);
      if (announced > told && !underWay) plan();
    },
    onAnnounce: (listener) => line.listen(listener),
  };
}
