import type { Attachment } from '../../model/attachment.ts';
import type { MentionPlace } from './mentioned.ts';
import type { RoomStorage } from './storage.ts';

/** A comment that was written and not sent. */
export interface Draft {
  readonly text: string;
  /** The users that were mentioned, by id, with the name as it is in the text. */
  readonly mentions: Readonly<Record<string, string>>;
  /** Where they were chosen in the text. */
  readonly places?: readonly MentionPlace[];
  /** Files that have been uploaded already. */
  readonly attachments: readonly Attachment[];
  /** Of an edit: the text that it began with. */
  readonly base?: string | undefined;
}

/** A draft without content. */
export const emptyDraft: Draft = { text: '', mentions: {}, attachments: [] };

/**
 * The drafts of a room by field, such as `new`, the id of a thread, or that of a comment being edited. They are kept
 * over a reload of the page, and so is what was sent until the server has accepted it. What it refuses is in its field
 * again.
 */
export class Drafts {
  readonly #storage: () => RoomStorage;
  readonly #sent = new Map<string, readonly Draft[]>();
  readonly #refused = new Map<string, number>();

  constructor(storage: () => RoomStorage) {
    this.#storage = storage;
  }

  /** The draft in a field; null if there is none. */
  read(field: string): Draft | null {
    const stored = this.#storage().read(`draft:${field}`) as Partial<Draft> | null;
    if (typeof stored?.text !== 'string') return null;
    const sent = this.#waiting(field);
    const rest = stored.text.startsWith(sent.text)
      ? stored.text.slice(sent.text.length).replace(/^\n/, '')
      : stored.text;
    const attachments = (Array.isArray(stored.attachments) ? stored.attachments : []).filter(
      ({ id }) => !sent.attachments.some((other) => other.id === id),
    );
    const draft = {
      text: rest,
      mentions: stored.mentions ?? {},
      places: moved(stored.places, rest.length - stored.text.length),
      attachments,
      base: stored.base,
    };
    return isEmpty(draft) ? null : draft;
  }

  /** Keeps what is being written in a field. */
  write(field: string, draft: Draft): void {
    const kept = joined(this.#waiting(field), draft);
    this.#storage().write(`draft:${field}`, isEmpty(kept) ? null : kept);
  }

  /** Takes a draft out of its field until `settle`. */
  send(field: string, draft: Draft): void {
    this.#sent.set(field, [...(this.#sent.get(field) ?? []), draft]);
    this.write(field, emptyDraft);
  }

  /** Ends `send`. If the server refused the draft, puts it back into its field, before newer text. */
  settle(field: string, draft: Draft, accepted: boolean): void {
    const current = this.read(field) ?? emptyDraft;
    const others = (this.#sent.get(field) ?? []).filter((other) => other !== draft);
    if (others.length === 0) this.#sent.delete(field);
    else this.#sent.set(field, others);
    this.write(field, accepted ? current : joined(draft, current));
    if (!accepted) this.#refused.set(field, this.refusals(field) + 1);
  }

  /** How often something was put back into a field. */
  refusals(field: string): number {
    return this.#refused.get(field) ?? 0;
  }

  #waiting(field: string): Draft {
    return (this.#sent.get(field) ?? []).reduce(joined, emptyDraft);
  }
}

function isEmpty({ text, attachments }: Draft): boolean {
  return text.trim() === '' && attachments.length === 0;
}

function joined(first: Draft, second: Draft): Draft {
  const text = [first.text, second.text].filter((part) => part !== '').join('\n');
  const places = [...(first.places ?? []), ...moved(second.places, text.length - second.text.length)];
  return {
    text,
    mentions: { ...first.mentions, ...second.mentions },
    places,
    attachments: [...first.attachments, ...second.attachments],
    base: first.base ?? second.base,
  };
}

function moved(places: Draft['places'] = [], by: number): readonly MentionPlace[] {
  return places.map((place) => ({ ...place, at: place.at + by })).filter(({ at }) => at >= 0);
}
