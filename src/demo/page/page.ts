/** The users of the page, as the cards and pins show them. */
export interface Users {
  /** The id of the user that the page is used as. */
  currentUserId(): string;
  /** The display name of a user: the id where no name is known. */
  nameOf(userId: string): string;
}

/** What the cards call on the page. */
export interface Actions {
  /** Sends a write while `button` is disabled. Returns whether it was accepted; if not, the page shows the user why. */
  perform(button: HTMLButtonElement, type: string, data: object): Promise<boolean>;
  /** Updates every card from the board. */
  redraw(): void;
}
