import type { Comment } from '../../model/comment.ts';
import { element, submitByKey, timeElement } from './dom.ts';
import type { Actions, People } from './thread-card.ts';

/** One comment, with the means to edit and delete it for its author. */
export class CommentCard {
  readonly root = element('li', { className: 'comment' });
  readonly #people: People;
  readonly #actions: Actions;
  #shown = '';
  #editing = false;

  constructor(people: People, actions: Actions) {
    this.#people = people;
    this.#actions = actions;
  }

  /** Shows `comment`; draws nothing anew when nothing changed, and not while its text is being edited. */
  update(comment: Comment, alone: boolean): void {
    const state = JSON.stringify([comment, alone, this.#people.me(), this.#people.name(comment.userId)]);
    if (this.#editing || state === this.#shown) return;
    this.#shown = state;
    this.#show(comment, alone);
  }

  #show(comment: Comment, alone: boolean): void {
    const name = this.#people.name(comment.userId);
    const head = element('p', { className: 'byline' }, avatar(comment.userId, name), element('strong', {}, name), timeElement(comment.createdAt));
    if (comment.editedAt !== null) head.append(element('span', { className: 'edited' }, 'edited'));
    if (comment.userId === this.#people.me()) head.append(this.#tools(comment, alone));
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
  const made = element('span', { className: 'avatar', 'aria-hidden': 'true' }, Array.from(name)[0]?.toUpperCase() ?? '?');
  made.style.setProperty('--hue', String(hue));
  return made;
}
