/** The field that a list belongs to. */
interface Field {
  requestUpdate(): void;
}

let lists = 0;

/**
 * A list that opens beside a field and follows what is typed. The field keeps the focus; the arrow keys, Enter and Tab
 * choose, Escape closes it.
 */
export abstract class ChoiceList<T, F extends Field> {
  protected readonly field: F;
  protected readonly id = `choices-${(lists += 1)}`;
  protected choices: readonly T[] = [];
  /** The place of the choice that Enter takes. */
  protected chosen = 0;

  constructor(field: F) {
    this.field = field;
  }

  /** For `aria-controls`; null while there is nothing to choose. */
  get controls(): string | null {
    return this.choices.length === 0 ? null : this.id;
  }

  /** For `aria-activedescendant`; null as for `controls`. */
  get active(): string | null {
    return this.choices.length === 0 ? null : this.optionId(this.chosen);
  }

  /** Closes the list. No effect while it is closed. */
  abstract close(): void;

  /** Takes a choice, and closes the list. */
  protected abstract choose(choice: T): void;

  /** Whether Escape closes something. */
  protected get isOpen(): boolean {
    return this.choices.length > 0;
  }

  protected optionId(index: number): string {
    return `${this.id}-${index}`;
  }

  /** For the `pointerdown` of an option. */
  protected chooser(choice: T): (event: Event) => void {
    return (event) => {
      // The field keeps the focus.
      event.preventDefault();
      this.choose(choice);
    };
  }

  /** Handles a key while the list is open. Returns whether the field should ignore it. */
  onKey(event: KeyboardEvent): boolean {
    const { length } = this.choices;
    if (length === 0 && !(this.isOpen && event.key === 'Escape')) return false;
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp':
        this.chosen = (this.chosen + (event.key === 'ArrowDown' ? 1 : length - 1)) % length;
        this.field.requestUpdate();
        break;
      case 'Enter':
      case 'Tab':
        this.choose(this.choices[this.chosen] as T);
        break;
      case 'Escape':
        event.stopPropagation();
        this.close();
        break;
      default:
        return false;
    }
    event.preventDefault();
    return true;
  }
}
