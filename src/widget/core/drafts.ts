import type { Attachment } from '../../model/attachment.ts';
import type { RoomStorage } from './storage.ts';

/** What a user has written and not sent. */
export interface Draft {
  readonly text: string;
  /** Users chosen in the mention picker: id -> name as it is in the text. */
  readonly mentions: Readonly<Record<string, string>>;
  /** Files that have been uploaded already. */
  readonly attachments: readonly Attachment[];
}

/** A draft without content. */
export const emptyDraft: Draft = { text: '', mentions: {}, attachments: [] };

/** The draft of a field, such as `new`, the id of a thread, or that of a comment being edited. */
export function readDraft(storage: RoomStorage, field: string): Draft {
  const stored = storage.read(`draft:${field}`) as Partial<Draft> | null;
  if (typeof stored?.text !== 'string') return emptyDraft;
  return { text: stored.text, mentions: stored.mentions ?? {}, attachments: Array.isArray(stored.attachments) ? stored.attachments : [] };
}

/** Keeps a draft over a reload of the page; one without content is forgotten. */
export function writeDraft(storage: RoomStorage, field: string, draft: Draft): void {
  const isEmpty = draft.text.trim() === '' && draft.attachments.length === 0;
  storage.write(`draft:${field}`, isEmpty ? null : draft);
}

/** The ids of the chosen users that the text still names. */
export function mentionedIn({ text, mentions }: Draft): string[] {
  return Object.entries(mentions).flatMap(([userId, name]) => (text.includes(`@${name}`) ? [userId] : []));
}
