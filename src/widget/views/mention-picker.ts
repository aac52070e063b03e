import { html, nothing, type TemplateResult } from 'lit';
import type { UserSummary } from '../../model/user.ts';
import type { App } from '../core/app.ts';
import { type Person, personOf } from '../core/people.ts';
import { avatar } from './avatar.ts';
import { ChoiceList } from '../choice-list.ts';
import { openMenu } from './open-menu.ts';

/** The field that a picker belongs to. */
interface Field {
  readonly app: App;
  readonly area: HTMLTextAreaElement | null;
  requestUpdate(): void;
  mention(userId: string, name: string, from: number, to: number): void;
}

const MAX_CHOICES = 6;
/** An `@` with up to two words behind it, at the cursor. */
const QUERY = /(?:^|[\s(])@([\p{L}\p{N}._-]{0,40}(?: [\p{L}\p{N}._-]{0,40})?)$/u;

/** The list of people that opens behind an `@`. */
export class MentionPicker extends ChoiceList<Person, Field> {
  /** Whether there is nobody but the user. */
  #nobody = false;
  #from = 0;
  #asked = '';

  /** Opens, changes or closes the list for what is before the cursor. */
  follow(area: HTMLTextAreaElement): void {
    const found = QUERY.exec(area.value.slice(Math.max(0, area.selectionStart - 100), area.selectionStart));
    const wanted = found?.[1];
    if (wanted === undefined) return this.close();
    this.#from = area.selectionStart - wanted.length - 1;
    void this.#search(wanted);
  }

  override close(): void {
    this.#asked = '';
    if (this.isOpen) this.#show([]);
  }

  protected override get isOpen(): boolean {
    return this.#nobody || super.isOpen;
  }

  render(): TemplateResult | typeof nothing {
    const { language } = this.field.app;
    if (this.#nobody)
      return html`<p class="menu mention-list" role="status">
        <span class="option">${language.text('emptySearchTitle')}</span>
      </p>`;
    if (this.choices.length === 0) return nothing;
    return html`<div class="menu mention-list" role="listbox" id=${this.id} aria-label=${language.text('mentionList')}>
      ${this.choices.map((person, index) => this.#option(person, index))}
    </div>`;
  }

  /** Puts the list where the window has room for it. Call it after each rendering of the field. */
  place(): void {
    const composer = this.field.area?.closest<HTMLElement>('.composer');
    const list = composer?.querySelector<HTMLElement>('.mention-list');
    // Above, because the keyboard of a touch screen may cover what is below.
    if (composer && list) openMenu(list, composer, 'above');
  }

  #option(person: Person, index: number): TemplateResult {
    // Of several people with one name the id tells who is who.
    const isAmbiguous = this.choices.some(({ name, userId }) => name === person.name && userId !== person.userId);
    return html`<div
      class="option"
      role="option"
      id=${this.optionId(index)}
      aria-selected=${String(index === this.chosen)}
      @pointerdown=${this.chooser(person)}
    >
      ${avatar(person, 'small')}<bdi>${person.name}</bdi>${isAmbiguous ? html`<bdi class="quiet">${person.userId}</bdi>` : nothing}${person.isBot ? html`<span class="tag">${this.field.app.language.text('bot')}</span>` : nothing}
    </div>`;
  }

  async #search(wanted: string): Promise<void> {
    const { app } = this.field;
    const asked = `@${wanted}`;
    this.#asked = asked;
    this.#show(matching(app, wanted, []));
    try {
      const found = await search(app, wanted);
      const choices = matching(app, wanted, found);
      if (this.#asked === asked) this.#show(choices, wanted === '' && choices.length === 0);
    } catch {
      // Those who are known already stay in the list.
    }
  }

  #show(choices: readonly Person[], nobody = false): void {
    this.#nobody = nobody;
    const chosen = this.choices[this.chosen]?.userId;
    this.choices = choices;
    this.chosen = Math.max(
      0,
      choices.findIndex(({ userId }) => userId === chosen),
    );
    this.field.requestUpdate();
  }

  protected override choose(person: Person): void {
    const { area } = this.field;
    if (area === null) return;
    this.field.mention(person.userId, person.name, this.#from, area.selectionStart);
    this.close();
  }
}

/** Users of the environment; of the room for a user whose token is confined to rooms. */
async function search({ session, room }: App, wanted: string): Promise<readonly UserSummary[]> {
  try {
    return await session.searchUsers(wanted, { limit: MAX_CHOICES });
  } catch {
    return session.searchUsers(wanted, { limit: MAX_CHOICES, roomId: room.roomId });
  }
}

function matching(app: App, wanted: string, found: readonly UserSummary[]): Person[] {
  const known = [...app.snapshot.presence.map(({ userId }) => userId), ...Object.keys(app.snapshot.users)];
  // The server compares names more broadly, for example without accents.
  const answered = new Set(found.map(({ userId }) => userId));
  const people = new Map(
    [...known.map((userId) => app.person(userId)), ...found.map((user) => personOf(user.userId, user))].map(
      (person) => [person.userId, person],
    ),
  );
  const start = wanted.toLocaleLowerCase();
  const fits = ({ name, userId }: Person): boolean =>
    answered.has(userId) ||
    [...name.split(' '), name, userId].some((text) => text.toLocaleLowerCase().startsWith(start));
  return [...people.values()].filter((person) => person.userId !== app.userId && fits(person)).slice(0, MAX_CHOICES);
}
