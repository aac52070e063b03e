import { html, nothing, type TemplateResult } from 'lit';
import type { Comment } from '../../model/comment.ts';
import type { App } from '../core/app.ts';
import type { Inline } from '../text/inline.ts';
import { type Block, parseMarkdown } from '../text/markdown.ts';
import { safeText, shorten } from '../text/safe-text.ts';

/** The text of a comment, formatted. Nothing in it can become markup, and its direction does not affect what is around it. */
export function commentBody(app: App, { body, mentions }: Comment): TemplateResult | typeof nothing {
  if (body.trim() === '') return nothing;
  const names = new Map(mentions.map((userId) => [userId, app.person(userId).name]));
  return html`<div class="body" part="comment-body">${parseMarkdown(safeText(body), names).map((block) => renderBlock(app, block))}</div>`;
}

/** A comment in one line, without marks: for lists and labels. One without a visible text is named by what it has instead. */
export function plainText({ language }: App, comment: Comment | undefined, maxLength = 140): string {
  const line = safeText((comment?.body ?? '').slice(0, 4 * maxLength)).replaceAll(/```|\*\*|~~|`/g, '').replaceAll(/\s+/g, ' ').trim();
  return shorten(line, maxLength) || (comment?.attachments.length ? language.text('attachmentOnly') : '…');
}

function renderBlock(app: App, block: Block): TemplateResult {
  switch (block.kind) {
    case 'code':
      return html`<pre dir="ltr" tabindex="0"><code>${block.text}</code></pre>`;
    case 'list': {
      const items = block.items.map((item) => html`<li>${renderInlines(app, item)}</li>`);
      return block.ordered ? html`<ol dir="auto" start=${block.start}>${items}</ol>` : html`<ul dir="auto">${items}</ul>`;
    }
    case 'quote':
      return html`<blockquote dir="auto">${renderLines(app, block.lines)}</blockquote>`;
    case 'paragraph':
      return html`<p dir="auto">${renderLines(app, block.lines)}</p>`;
  }
}

function renderLines(app: App, lines: readonly (readonly Inline[])[]): unknown[] {
  return lines.map((line, index) => html`${index > 0 ? html`<br />` : nothing}${renderInlines(app, line)}`);
}

function renderInlines(app: App, inlines: readonly Inline[]): unknown[] {
  return inlines.map((inline) => {
    switch (inline.kind) {
      case 'text':
        return inline.text;
      case 'code':
        return html`<code dir="ltr">${inline.text}</code>`;
      case 'strong':
        return html`<strong>${renderInlines(app, inline.content)}</strong>`;
      case 'emphasis':
        return html`<em>${renderInlines(app, inline.content)}</em>`;
      case 'deleted':
        return html`<s>${renderInlines(app, inline.content)}</s>`;
      case 'link':
        return html`<a href=${inline.href} target="_blank" rel="noopener noreferrer nofollow ugc">${renderInlines(app, inline.content)}</a>`;
      case 'mention':
        return html`<bdi class="mention ${inline.userId === app.userId ? 'self' : ''}" part="mention">@${inline.text}</bdi>`;
    }
  });
}
