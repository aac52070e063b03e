import type { CollabCommentsEventDetails } from '../../client/widget.ts';

/** The methods of the element that the app calls. */
export interface AppHost {
  /** Something that is shown has changed. */
  changed(): void;
  /** Dispatches an event of the element (docs/widget.md). Returns false if the page has prevented what follows. */
  dispatch<Name extends keyof CollabCommentsEventDetails>(
    name: Name,
    detail: CollabCommentsEventDetails[Name],
  ): boolean;
  /** Tells a screen reader. */
  announce(text: string): void;
  /** Address of the page's service worker for push messages; empty for none. */
  pushWorker(): string;
}
