import type { StoredEvent } from '../../ports/store.ts';
import type { StoreTransfer, StreamExtent } from '../../ports/store-transfer.ts';
import { Failure } from '../failure.ts';

/** Events and characters of one page. */
const PAGE_EVENTS = 1_000;
const PAGE_CHARS = 4_000_000;

/** The event streams of a move. */
export class EventCopy {
  readonly #source: StoreTransfer;
  readonly #target: StoreTransfer;
  readonly #step: () => void;
  /** Up to which position the events of each stream were read back from the target and compared. */
  readonly #verified = new Map<string, number>();
  /** Events that were read back from the target and compared. */
  verified = 0;
  /** The streams and events that the source has. */
  streams = 0;
  events = 0;

  /** @param step called after each page; throws to end the copy */
  constructor(source: StoreTransfer, target: StoreTransfer, step: () => void) {
    this.#source = source;
    this.#target = target;
    this.#step = step;
  }

  /**
   * Appends the events that the target lacks, with their positions, and compares all of them that were not compared
   * before. Returns the number of events that were appended.
   */
  async copy(): Promise<number> {
    const extents = await this.#source.streams();
    const existing = new Map((await this.#target.streams()).map((extent) => [extent.stream, extent]));
    this.streams = extents.length;
    this.events = extents.reduce((sum, { oldest, last }) => sum + last - oldest + 1, 0);
    let appended = 0;
    for (const extent of extents) {
      appended += await this.#append(extent, existing.get(extent.stream));
      existing.delete(extent.stream);
      await this.#verify(extent);
    }
    // Streams that have ended since they were copied.
    for (const stream of existing.keys()) {
      await this.#target.removeStream(stream);
      this.#verified.delete(stream);
    }
    return appended;
  }

  async #append({ stream, oldest, last }: StreamExtent, existing: StreamExtent | undefined): Promise<number> {
    const isAhead = existing !== undefined && existing.last > last;
    if (isAhead) await this.#target.removeStream(stream);
    let since = isAhead ? oldest - 1 : (existing?.last ?? oldest - 1);
    let appended = 0;
    while (since < last) {
      const page = await this.#source.events(stream, since, PAGE_EVENTS, PAGE_CHARS);
      const [first] = page;
      // The stream has ended meanwhile: the next pass removes it.
      if (first === undefined) break;
      // Events were trimmed that were never copied: positions go on after them.
      if (first.seq !== since + 1) {
        await this.#target.removeStream(stream);
        this.#verified.delete(stream);
      }
      await this.#target.append(stream, page);
      appended += page.length;
      since = page.at(-1)?.seq ?? last;
      this.#step();
    }
    return appended;
  }

  async #verify({ stream, oldest, last }: StreamExtent): Promise<void> {
    let since = Math.max(this.#verified.get(stream) ?? 0, oldest - 1);
    while (since < last) {
      const found = await this.#source.events(stream, since, PAGE_EVENTS, PAGE_CHARS);
      // The stream may have grown since it was copied, and may have ended.
      const page = found.filter(({ seq }) => seq <= last);
      const [first] = page;
      if (first === undefined) return;
      const copied = await this.#target.events(stream, first.seq - 1, page.length, Infinity);
      const wrong = page.findIndex((event, at) => !isSame(event, copied[at]));
      if (wrong >= 0)
        throw new Failure(
          `The event ${page[wrong]?.seq ?? 0} of the stream ${stream} differs in ${this.#target.label} from what was written.`,
          ['Check the disk and the logs of the target. Then empty the target, and run the command again.'],
        );
      this.verified += page.length;
      since = page.at(-1)?.seq ?? last;
      this.#verified.set(stream, since);
      this.#step();
    }
  }
}

function isSame(one: StoredEvent, other: StoredEvent | undefined): boolean {
  return one.seq === other?.seq && one.text === other.text;
}
