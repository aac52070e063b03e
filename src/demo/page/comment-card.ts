import type { Comment } from '../../model/comment.ts';
import { element, submitByKey, timeElement } from './dom.ts';
import type { Actions, Users } from './page.ts';

/** One comment. Its author gets buttons to edit and delete it. */
export class CommentCard {
  readonly root = element('li', { className: 'comment' });
  readonly #users: Users;
  readonly #actions: Actions;
  #shown = '';
  #editing = false;

  constructor(users: Users, actions: Actions) {
    this.#users = users;
    this.#actions = actions;
  }

  /** Shows `comment`. Leaves the card as it is when nothing changed, and while the user edits its text. */
  update(comment: Comment, alone: boolean): void {
    const state = JSON.stringify([comment, alone, this.#users.currentUserId(), this.#users.nameOf(comment.userId)]);
    if (this.#editing || state === this.#shown) return;
    this.#shown = state;
    this.#show(comment, alone);
  }

  #show(comment: Comment, alone: boolean): void {
    const name = this.#users.nameOf(comment.userId);
    const head = element('p', { className: 'byline' }, avatar(comment.userId, name), element('strong', {}, name), timeElement(comment.createdAt));
    if (comment.editedAt !== null) head.append(element('span', { className: 'edited' }, 'edited'));
    if (comment.userId === this.#users.currentUserId()) head.append(this.#tools(comment, alone));
    this.root.replaceChildren(head, element('p', { className: 'body' }, comment.body));
    this.root.dataset['commentId'] = comment.id;
  }

  #tools(comment: Comment, alone: boolean): HTMLElement {
    const edit = element('button', { type: 'button', className: 'quiet', onclick: () => this.#edit(comment) }, 'Edit');
    const remove = element('button', { type: 'button', className: 'quiet', 'aria-label': alone ? 'Delete this thread' : 'Delete this comment' }, 'Delete');
    remove.onclick = () => void this.#actions.perform(remove, 'comment.delete', { commentId: comment.id });
    return element('span', { className: 'tools' }, edit, remove);
  }

  #edit(comment: Comment): void {
    const field = element('textarea', { value: comment.body, rows: 3, maxLength: 10_000, required: true, 'aria-label': 'Text of your comment' });
    const cancel = element('button', { type: 'button', className: 'quiet' }, 'Cancel');
    const save = element('button', { type: 'submit' }, 'Save');
    const form = element('form', { className: 'editor' }, field, element('div', { className: 'row' }, cancel, save));
    const done = (): void => {
      this.#editing = false;
      this.#shown = '';
      this.#actions.redraw();
      this.root.querySelector<HTMLElement>('.tools button')?.focus();
    };
    cancel.onclick = done;
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') done();
    });
    submitByKey(field);
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (await this.#actions.perform(save, 'comment.update', { commentId: comment.id, body: field.value })) done();
    };
    this.#editing = true;
    this.root.replaceChildren(form);
    field.focus();
  }
}

function avatar(userId: string, name: string): HTMLElement {
  const hue = Array.from(userId).reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 360, 7);
  const icon = element('span', { className: 'avatar', 'aria-hidden': 'true' }, Array.from(name)[0]?.toUpperCase() ?? '?');
  icon.style.setProperty('--hue', String(hue));
  return icon;
}
