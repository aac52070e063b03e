import type { Attachment } from '../../model/attachment.ts';
import type { Position } from '../../model/thread.ts';
import type { Filter } from './filters.ts';

/** The state of the widget besides the data: which parts are open. */
export interface View {
  /** Whether the panel is open. */
  readonly panel: boolean;
  /** What the panel shows instead of the threads; null whenever it is opened or closed without naming it. */
  readonly side: 'inbox' | 'moderation' | null;
  readonly filter: Filter;
  /** The text searched for. */
  readonly query: string;
  /** How many threads the panel lists at most: more when it is scrolled to its end. */
  readonly listLength: number;
  /** The open thread, and the comment to scroll to. */
  readonly open: { readonly threadId: string; readonly commentId: string | null } | null;
  /** Where a new thread is being written. */
  readonly composing: Position | null;
  /** The threads of the open cluster. */
  readonly cluster: readonly string[] | null;
  /** Set while a place is being chosen: for the thread with this id, or for a new one. */
  readonly placing: { readonly threadId: string | null } | null;
  /** Whether no pins are shown but that of the open thread. */
  readonly hidesPins: boolean;
  /** The pin that had the focus or was opened last, by its first thread. */
  readonly pin: string | null;
  /** Whether the user has dismissed the message of what is wrong with the connection or the room. */
  readonly dismissed: boolean;
  /** The attachments in the viewer, and the one that is shown. */
  readonly viewer: { readonly attachments: readonly Attachment[]; readonly index: number } | null;
}

/** The threads that the panel lists at first, which are more than a window shows, and those added at its end. */
export const LIST_STEP = 50;

/** Everything closed. */
export const initialView: View = {
  panel: false,
  side: null,
  filter: 'open',
  query: '',
  listLength: LIST_STEP,
  open: null,
  composing: null,
  cluster: null,
  placing: null,
  hidesPins: false,
  pin: null,
  dismissed: false,
  viewer: null,
};
