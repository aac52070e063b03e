import type { BoardThread } from './board.ts';
import { CommentCard } from './comment-card.ts';
import { element, submitByKey } from './dom.ts';

/** Who is who on the page. */
export interface People {
  /** The user that the page is used as. */
  me(): string;
  /** What to call a user. */
  name(userId: string): string;
}

/** What cards ask of the page. */
export interface Actions {
  /** Sends a write while `button` is disabled. Returns whether it was accepted; the page tells the user why not. */
  perform(button: HTMLButtonElement, type: string, data: object): Promise<boolean>;
  /** Brings every card up to what the board holds. */
  redraw(): void;
}

/** One thread: its comments, a reply form, and resolve or reopen. What is being typed survives every update. */
export class ThreadCard {
  readonly root: HTMLLIElement;
  readonly #people: People;
  readonly #actions: Actions;
  readonly #title = element('h3');
  readonly #badge = element('span', { className: 'badge' }, 'Resolved');
  readonly #resolve = element('button', { type: 'button', className: 'quiet' });
  readonly #list = element('ol', { className: 'comments' });
  readonly #reply = element('textarea', { rows: 1, required: true, maxLength: 10_000, placeholder: 'Reply…' });
  readonly #comments = new Map<string, CommentCard>();

  constructor(threadId: string, people: People, actions: Actions) {
    this.#people = people;
    this.#actions = actions;
    this.#title.id = `title-${threadId}`;
    const send = element('button', { type: 'submit' }, 'Reply');
    const form = element('form', { className: 'reply' }, this.#reply, send);
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (await actions.perform(send, 'comment.create', { threadId, body: this.#reply.value })) form.reset();
    };
    submitByKey(this.#reply);
    const head = element('header', {}, this.#title, this.#badge, this.#resolve);
    const article = element('article', { tabIndex: -1, 'aria-labelledby': this.#title.id }, head, this.#list, form);
    this.root = element('li', { className: 'thread', id: `thread-${threadId}` }, article);
  }

  /** Shows the thread as the board has it; `pin` is its number on the page, if it is pinned. */
  update({ thread, comments }: BoardThread, pin: number | null): void {
    const author = this.#people.name(thread.userId);
    this.#title.textContent = pin === null ? `${author}’s thread` : `${pin} · ${author}’s thread`;
    this.#reply.setAttribute('aria-label', `Reply to ${author}’s thread`);
    this.root.classList.toggle('resolved', thread.resolved);
    this.#badge.hidden = !thread.resolved;
    this.#resolve.textContent = thread.resolved ? 'Reopen' : 'Resolve';
    this.#resolve.onclick = () =>
      void this.#actions.perform(this.#resolve, thread.resolved ? 'thread.reopen' : 'thread.resolve', { threadId: thread.id });

    const gone = new Set(this.#comments.keys());
    for (const comment of comments) {
      gone.delete(comment.id);
      const card = this.#comments.get(comment.id) ?? this.#add(comment.id);
      card.update(comment, comments.length === 1);
    }
    for (const id of gone) {
      this.#comments.get(id)?.root.remove();
      this.#comments.delete(id);
    }
  }

  /** Brings the thread into view and puts the keyboard there. */
  reveal(): void {
    this.root.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
    this.root.querySelector('article')?.focus({ preventScroll: true });
  }

  #add(id: string): CommentCard {
    const card = new CommentCard(this.#people, this.#actions);
    this.#comments.set(id, card);
    this.#list.append(card.root);
    return card;
  }
}
