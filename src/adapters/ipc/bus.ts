import { BatchQueue } from '../../lib/batch-queue.ts';
import { type Bus, MAX_WAITING, type Publication } from '../../ports/bus.ts';

/** The line that a bus sends through. `sent` is called once a message has left this process. Listening returns the way to stop. */
export interface BusChannel {
  /** Calls `listener` with how many others hear what is sent, whenever that changes. */
  onPeerCount(listener: (others: number) => void): () => void;
  sendHint(position: number, sent: () => void): void;
  onHint(listener: (position: number) => void): () => void;
  sendPublications(publications: readonly Publication[], sent: () => void): void;
  onPublications(listener: (publications: readonly Publication[]) => void): () => void;
}

/**
 * A bus over the line to the primary, which relays. At most one hint is under way: what is announced meanwhile goes as
 * one hint after it, so a slow primary costs no memory. Publications go in batches, likewise one at a time. Where nobody
 * else would hear it, nothing is sent: a hint to the primary costs as much as a few comments.
 */
export function ipcBus(line: BusChannel): Bus {
  const batches = new BatchQueue<Publication>((items, sent) => line.sendPublications(items, sent), sizeOf, MAX_WAITING);
  let announced = 0;
  let told = 0;
  let underWay = false;
  let alone = false;

  const send = (): void => {
    told = announced;
    line.sendHint(told, () => {
      underWay = false;
      if (announced > told) plan();
    });
  };
  const plan = (): void => {
    underWay = true;
    setImmediate(send);
  };
  line.onPeerCount((others) => {
    alone = others === 0;
    if (!alone && announced > told && !underWay) plan();
  });

  return {
    announce(position) {
      announced = Math.max(announced, position);
      if (announced > told && !underWay && !alone) plan();
    },
    onAnnounce: (listener) => line.onHint(listener),
    publish(publication) {
      if (!alone) batches.add(publication);
    },
    onPublish: (listener) =>
      line.onPublications((publications) => {
        for (const publication of publications) listener(publication);
      }),
  };
}

const sizeOf = ({ topic, text }: Publication): number => topic.length + text.length;
