import { LitElement } from 'lit';
import type { App } from '../core/app.ts';

/**
 * A piece of the widget with state of its own. It renders into the shadow root of the widget, and so shares its styles.
 */
export abstract class Part extends LitElement {
  static override properties: Record<string, object> = { app: { attribute: false }, version: { attribute: false } };

  declare app: App;
  /** Changes with every change of the app, so that the part is rendered again. */
  declare version: number;

  /** The browser moves the widget with its state (`moveBefore`). */
  connectedMoveCallback(): void {}

  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

/** Registers a part under its tag, unless another copy of the script has done so. */
export function definePart(tag: string, part: CustomElementConstructor): void {
  if (customElements.get(tag) === undefined) customElements.define(tag, part);
}
