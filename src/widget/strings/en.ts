import type { enLater } from './en-later.ts';

/** The texts in English that the first part of the widget needs. `{name}` is replaced by a value. */
export const en = {
  comments: 'Comments',
  addComment: 'Add a comment',
  showComments: 'Show comments',
  hideComments: 'Hide comments',
  unreadCount: '{count} unread',
  inbox: 'Notifications',
  close: 'Close',
  send: 'Send',
  undo: 'Undo',
  retry: 'Try again',
  dismiss: 'Dismiss',
  deleted: 'Comment deleted',
  threadDeleted: 'Thread deleted',
  held: 'A moderator has to approve your comment.',
  rejected: 'A moderator rejected your comment: {reason}',
  heldGone: 'What your comment belonged to was deleted before a moderator approved it.',
  pending: 'Pending',
  withdrawn: 'Comment withdrawn',
  resolved: 'Resolved',
  linkCopied: 'Link copied',
  copyText: 'Copy your text',
  textCopied: 'Text copied',
  bot: 'Bot',
  mention: 'Mention someone',
  viewer: 'Attachment viewer',
  filters: 'Show threads',
  readOnly: 'You can read along here. To comment, ask the owner of this page for access.',
  pin: 'Thread by {name}: {text}',
  pinUnread: 'Unread thread by {name}: {text}',
  cluster: '{count} threads here',
  online: 'Online now: {names}',
  attachmentOnly: 'Attachment',
  connecting: 'Connecting…',
  offline: 'You are offline. What you write is kept and sent when the network is back.',
  reconnecting: 'The connection was lost. Reconnecting…',
  errorKey: 'This page’s key is not valid. Ask the owner of this page to check the publishable key.',
  errorToken: 'Your session has ended. Sign in again, or reload the page.',
  errorTokenInvalid: 'Your sign-in was not accepted. Reload the page to sign in again.',
  errorSignIn:
    'The page could not sign you in to the comments. It tries again by itself; if this stays, reload the page.',
  errorOrigin: 'This site may not use the comments. Its owner has to add {origin} to the allowed origins.',
  errorDisabled: 'Comments are switched off here. Ask the owner of this page.',
  errorForbidden: 'You may not do this.',
  errorTooLarge: '{name} is too large. Files may have at most {limit} MB.',
  errorTooLargeUnknown: '{name} is too large.',
  errorType: '{name} cannot be attached. Choose a picture (JPEG, PNG, GIF, WebP), a sound or a video.',
  errorMediaDisabled: '{name} cannot be attached: such files are switched off here.',
  errorUpload: '{name} could not be uploaded: there is no connection. Try again in a moment.',
  errorFile: '{name} cannot be attached: it is empty or damaged.',
  errorRate: {
    one: 'That was a lot at once. Wait {seconds} second, then try again.',
    other: 'That was a lot at once. Wait {seconds} seconds, then try again.',
  },
  errorRateRetry: 'That was a lot at once. Retrying in {seconds} s.',
  errorQuota: 'The quota is used up. Ask the owner of this page.',
  errorGone: 'This was deleted meanwhile.',
  errorConnection: 'There is no connection. What you wrote is kept. Try again in a moment.',
  errorServer: 'The server could not do this. What you wrote is kept. Try again in a moment.',
  focusTaken: 'This page takes the keyboard back. Close its dialog to write here.',
  errorSetup: 'The comments are not set up: the attribute {name} is missing.',
  errorAttribute: 'The comments are not set up: {reason}',
} as const;

/** The name of a text. */
export type StringKey = keyof typeof en | keyof typeof enLater;

/** A text, or its forms by the plural rules of its language, chosen by the value `count`, or else `seconds`. */
export type Text = string | Readonly<Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }>;

/** All texts in one language. */
export type Strings = Readonly<Record<StringKey, Text>>;
