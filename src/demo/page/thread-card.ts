import type { BoardThread } from './board.ts';
import { CommentCard } from './comment-card.ts';
import { element, submitByKey } from './dom.ts';
import type { Actions, Users } from './page.ts';

/** One thread: its comments, a reply form, and a button that resolves or reopens it. Updates keep what the user has typed. */
export class ThreadCard {
  readonly root: HTMLLIElement;
  readonly #users: Users;
  readonly #actions: Actions;
  readonly #title = element('h3');
  readonly #badge = element('span', { className: 'badge' }, 'Resolved');
  readonly #resolve = element('button', { type: 'button', className: 'quiet' });
  readonly #list = element('ol', { className: 'comments' });
  readonly #reply = element('textarea', { rows: 1, required: true, maxLength: 10_000, placeholder: 'Reply…' });
  readonly #comments = new Map<string, CommentCard>();

  constructor(threadId: string, users: Users, actions: Actions) {
    this.#users = users;
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

  /** Shows the thread; `pin` is the number of its pin on the page, or null if it has none. */
  update({ thread, comments }: BoardThread, pin: number | null): void {
    const author = this.#users.nameOf(thread.userId);
    this.#title.textContent = pin === null ? `${author}’s thread` : `${pin} · ${author}’s thread`;
    this.#reply.setAttribute('aria-label', `Reply to ${author}’s thread`);
    this.root.classList.toggle('resolved', thread.resolved);
    this.#badge.hidden = !thread.resolved;
    this.#resolve.textContent = thread.resolved ? 'Reopen' : 'Resolve';
    this.#resolve.onclick = () =>
      void this.#actions.perform(this.#resolve, thread.resolved ? 'thread.reopen' : 'thread.resolve', { threadId: thread.id });

    const removed = new Set(this.#comments.keys());
    for (const comment of comments) {
      removed.delete(comment.id);
      const card = this.#comments.get(comment.id) ?? this.#add(comment.id);
      card.update(comment, comments.length === 1);
    }
    for (const id of removed) {
      this.#comments.get(id)?.root.remove();
      this.#comments.delete(id);
    }
  }

  /** Scrolls the thread into view and gives it the keyboard focus. */
  reveal(): void {
    this.root.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
    this.root.querySelector('article')?.focus({ preventScroll: true });
  }

  #add(id: string): CommentCard {
    const card = new CommentCard(this.#users, this.#actions);
    this.#comments.set(id, card);
    this.#list.append(card.root);
    return card;
  }
}
