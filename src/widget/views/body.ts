import { html, nothing, type TemplateResult } from 'lit';
import type { Comment } from '../../model/comment.ts';
import type { App } from '../core/app.ts';
import type { Inline } from '../text/inline.ts';
import { type Block, parseMarkdown } from '../text/markdown.ts';
import { safeText, shorten } from '../text/safe-text.ts';

/**
 * The text of a comment, formatted. Nothing in it can become markup, and its direction does not affect what is around
 * it.
 */
export function commentBody(app: App, comment: Comment): TemplateResult | typeof nothing {
  if (comment.body.trim() === '') return nothing;
  return html`<div class="body" part="comment-body">
    ${parse(app, comment).map((block) => renderBlock(app, block))}
  </div>`;
}

/**
 * A comment in one line, as it is shown but without formats: for lists and labels. One without a visible text is named
 * by what it has instead.
 */
export function plainText(app: App, comment: Comment | undefined, maxLength = 140): string {
  const line =
    comment === undefined
      ? ''
      : parse(app, comment, 4 * maxLength)
          .map(textOfBlock)
          .join(' ')
          .replaceAll(/\s+/g, ' ')
          .trim();
  return shorten(line, maxLength) || (comment?.attachments.length ? app.language.text('attachmentOnly') : '…');
}

/** The blocks of a comment, of its first `maxLength` characters. */
function parse(app: App, { body, mentions }: Comment, maxLength = body.length): Block[] {
  const names = new Map(mentions.map((userId) => [userId, app.person(userId).name]));
  return parseMarkdown(safeText(body.slice(0, maxLength)), names);
}

function textOfBlock(block: Block): string {
  if (block.kind === 'code') return block.text;
  return (block.kind === 'list' ? block.items : block.lines).map(textOfInlines).join(' ');
}

function textOfInlines(inlines: readonly Inline[]): string {
  return inlines
    .map((inline) =>
      'content' in inline ? textOfInlines(inline.content) : inline.kind === 'mention' ? `@${inline.text}` : inline.text,
    )
    .join('');
}

function renderBlock(app: App, block: Block): TemplateResult {
  switch (block.kind) {
    case 'code':
      return html`<pre dir="ltr" tabindex="0"><code>${block.text}</code></pre>`;
    case 'list': {
      const items = block.items.map((item) => html`<li>${renderInlines(app, item)}</li>`);
      return block.ordered
        ? html`<ol dir="auto" start=${block.start}>
            ${items}
          </ol>`
        : html`<ul dir="auto">
            ${items}
          </ul>`;
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
        return html`<a href=${inline.href} target="_blank" rel="noopener noreferrer nofollow ugc"
          >${renderInlines(app, inline.content)}</a
        >`;
      case 'mention':
        return html`<bdi class="mention ${inline.userId === app.userId ? 'self' : ''}" part="mention"
          >@${inline.text}</bdi
        >`;
    }
  });
}
