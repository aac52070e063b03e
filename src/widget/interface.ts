import type { CollabCommentsEventDetails } from '../client/widget.ts';

/** A row of docs/widget.md. */
export interface Documented {
  readonly name: string;
  readonly type?: string;
  readonly meaning: string;
}

/** The attributes and properties of `<collab-comments>`. */
export const attributes: readonly Documented[] = [
  {
    name: 'base-url',
    type: 'URL',
    meaning: 'Address of the server; that of the script if absent. Property `baseUrl`.',
  },
  { name: 'publishable-key', type: '`pk_…`', meaning: 'Required, unless `session` is set. Property `publishableKey`.' },
  { name: 'room', type: 'text', meaning: 'Required: the id of the room, usually one per page.' },
  {
    name: 'token',
    type: 'JWT',
    meaning: 'A token of the user. Use `tokenProvider` on pages that stay open for longer than a token is valid.',
  },
  {
    name: 'locale',
    type: 'BCP 47',
    meaning:
      'Language of texts and dates ([languages](#languages)). If absent, that of the page (`lang` of the ' +
      'element or around it), else of the browser.',
  },
  { name: 'theme', type: '`auto`, `light`, `dark`', meaning: 'Default: `auto`, as the browser prefers.' },
  {
    name: 'placement',
    type: '`bottom-right`, `bottom-left`, `top-right`, `top-left`',
    meaning:
      'The corner of the toolbar, and the side of the panel. `right` is the end of the line: the left on ' +
      'pages from right to left. Default: `bottom-right`.',
  },
  { name: 'cursors', type: 'boolean', meaning: 'Shows the pointers of the other users, and the own one to them.' },
  {
    name: 'share-connection',
    type: 'boolean',
    meaning:
      'One connection for all tabs of the browser with the same user ([when to use ' +
      'it](sdk.md#one-connection-for-all-tabs)). Not for a `session` of the page. Property ' +
      '`shareConnection`.',
  },
  {
    name: 'shortcuts',
    type: 'keys',
    meaning:
      'Keys to comment, and for the next and the previous thread, such as `shortcuts="c n p"`, which is ' +
      'also what the attribute without a value means. Off if it is absent. A key that the page handles ' +
      '(`preventDefault`) or declares (`aria-keyshortcuts`, `accesskey`) stays with the page.',
  },
  {
    name: 'push-worker',
    type: 'URL',
    meaning:
      'Address of the service worker of your page that shows push messages ' +
      '([channels.md](channels.md#push-messages-of-browsers)). With it, and with the plugin `web-push`, ' +
      'users can turn them on in the inbox. Property `pushWorker`.',
  },
];

/** The properties without an attribute. */
export const properties: readonly Documented[] = [
  {
    name: 'tokenProvider',
    type: '`() => string | Promise<string>`',
    meaning: 'Returns a token of the user; called for each connection, and before a token expires.',
  },
  {
    name: 'session',
    type: '`CollabSession`',
    meaning: 'A session of the SDK that the page has already, instead of key and token. The widget does not close it.',
  },
  { name: 'strings', type: 'object', meaning: 'Texts that replace those of the widget ([languages](#languages)).' },
];

/** The methods. */
export const methods: readonly Documented[] = [
  {
    name: 'openThread(threadId, commentId?)',
    meaning:
      'Opens a thread, at a comment of it; once the room is loaded, if it is not yet. One that the room does not have, such as ' +
      'one that your backend has just created, is opened if it arrives within 10 s.',
  },
  { name: 'togglePanel(open?)', meaning: 'Opens or closes the panel.' },
  { name: 'toggleInbox(open?)', meaning: 'Opens or closes the inbox. Does nothing where the server has none.' },
  { name: 'startComment()', meaning: 'Lets the user choose a place for a new thread.' },
];

/** The events, which bubble. `type` is their `detail`. */
export const events: readonly (Documented & { readonly name: keyof CollabCommentsEventDetails })[] = [
  { name: 'collab-ready', type: '`{ threads }`', meaning: 'The room is loaded; `threads` is their number.' },
  {
    name: 'collab-status',
    type: '`{ status, reason }`',
    meaning: 'The connection changed: `connecting`, `live`, `reconnecting`, `offline`, `closed`.',
  },
  { name: 'collab-thread-open', type: '`{ threadId }`', meaning: 'A thread was opened.' },
  { name: 'collab-thread-close', type: '`{ threadId }`', meaning: 'It was closed.' },
  {
    name: 'collab-thread-create',
    type: '`{ threadId }`',
    meaning: 'This user created a thread, and the server has it.',
  },
  {
    name: 'collab-comment-create',
    type: '`{ threadId, commentId }`',
    meaning: 'This user replied, and the server has it.',
  },
  {
    name: 'collab-notification-open',
    type: '`{ roomId, threadId, commentId }`',
    meaning: 'A notification was chosen in the inbox. `preventDefault()` leaves it to the page to lead there.',
  },
  {
    name: 'collab-error',
    type: '`{ code, message }`',
    meaning: 'Something was refused, and the widget shows a message. The codes are those of [errors.md](errors.md).',
  },
];

/** The parts, for `collab-comments::part(name)`. */
export const parts: readonly Documented[] = [
  { name: 'toolbar', meaning: 'The bar in the corner.' },
  { name: 'add', meaning: 'Its button to add a comment.' },
  { name: 'toggle', meaning: 'Its button for the panel.' },
  { name: 'bell', meaning: 'Its button for the inbox.' },
  { name: 'count', meaning: 'The number of unread notifications.' },
  { name: 'badge', meaning: 'The number of unread threads.' },
  { name: 'presence', meaning: 'The avatars of the users who are online.' },
  { name: 'connection', meaning: 'What is shown instead while there is no connection.' },
  { name: 'layer', meaning: 'What holds the pins.' },
  { name: 'pin', meaning: 'A pin.' },
  { name: 'cluster', meaning: 'A pin that stands for several threads.' },
  { name: 'cursor', meaning: 'The pointer of another user.' },
  { name: 'placing', meaning: 'What covers the page while a place is chosen.' },
  { name: 'hint', meaning: 'The instruction for that.' },
  { name: 'popover', meaning: 'The open thread, the field for a new one, or the list of a cluster.' },
  { name: 'resolve', meaning: 'The button to resolve or reopen.' },
  { name: 'comments', meaning: 'The comments of the open thread.' },
  { name: 'comment', meaning: 'A comment.' },
  { name: 'comment-author', meaning: 'The name of its author.' },
  { name: 'comment-body', meaning: 'Its text.' },
  { name: 'comment-actions', meaning: 'Its buttons.' },
  { name: 'mention', meaning: 'The name of a mentioned user.' },
  { name: 'reactions', meaning: 'The reactions of a comment.' },
  { name: 'reaction', meaning: 'A reaction with its count.' },
  { name: 'attachments', meaning: 'The files of a comment.' },
  { name: 'thumbnail', meaning: 'A picture among them.' },
  { name: 'player', meaning: 'A sound or video among them.' },
  { name: 'typing', meaning: 'Who is typing.' },
  { name: 'composer', meaning: 'The field to write in, with its buttons.' },
  { name: 'input', meaning: 'Its text area.' },
  { name: 'submit', meaning: 'Its button to send.' },
  { name: 'note', meaning: 'Why there is no field: the user may only read.' },
  { name: 'report', meaning: 'The form to report a comment.' },
  { name: 'rejection', meaning: 'Something of the user that a moderator has rejected, with the reason.' },
  { name: 'avatar', meaning: 'The picture or initials of a user.' },
  { name: 'panel', meaning: 'The panel with all threads.' },
  { name: 'list', meaning: 'Its list.' },
  { name: 'list-item', meaning: 'A thread in a list.' },
  { name: 'detached', meaning: 'The threads whose place is gone.' },
  { name: 'elsewhere', meaning: 'The threads that are pinned to other pages.' },
  { name: 'empty', meaning: 'What is shown instead of an empty list.' },
  { name: 'inbox', meaning: 'The inbox, in the place of the panel.' },
  { name: 'queue-entry', meaning: 'The button for the moderation queue, which moderators have in the panel.' },
  { name: 'queue', meaning: 'The moderation queue of the room, in the place of the panel.' },
  { name: 'queue-item', meaning: 'Something in it that waits for a decision.' },
  { name: 'settings', meaning: 'The settings of notifications in it.' },
  { name: 'follow', meaning: 'The button for what a thread notifies the user of.' },
  { name: 'viewer', meaning: 'The viewer of pictures.' },
  { name: 'toasts', meaning: 'What holds the messages.' },
  { name: 'toast', meaning: 'A message.' },
];

/** The custom properties. Colours need a contrast of at least 4.5:1 with what they stand on. */
export const customProperties: readonly Documented[] = [
  { name: '--collab-accent', meaning: 'Colour of buttons; any brand colour.' },
  {
    name: '--collab-on-accent',
    meaning: 'Colour of text on the accent. Default: black or white, whichever is readable on it.',
  },
  {
    name: '--collab-link',
    meaning:
      'Colour of links, mentions, unread marks and the edges of what has the focus. Default: the accent, ' +
      'darkened or lightened until it is readable.',
  },
  { name: '--collab-surface', meaning: 'Background of panel, popover and toolbar.' },
  { name: '--collab-raised', meaning: 'Background of fields, and of what the pointer is over.' },
  { name: '--collab-border', meaning: 'Colour of lines.' },
  { name: '--collab-text', meaning: 'Colour of text.' },
  { name: '--collab-muted', meaning: 'Colour of less important text.' },
  { name: '--collab-danger', meaning: 'Colour of errors and of deletion.' },
  { name: '--collab-success', meaning: 'Colour of what is resolved.' },
  { name: '--collab-radius', meaning: 'Radius of corners. Default: 12px.' },
  { name: '--collab-shadow', meaning: 'Shadow of what floats.' },
  { name: '--collab-font', meaning: 'Font family.' },
  { name: '--collab-font-size', meaning: 'Font size. Default: 14px.' },
  { name: '--collab-z-index', meaning: 'Default: 2147483000.' },
];
