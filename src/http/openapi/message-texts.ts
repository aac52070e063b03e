/** Descriptions of the tags of the AsyncAPI document, in the order of the alphabet. */
export const tagTexts = {
  comments: 'Comments: write, edit, delete and report them.',
  connection: 'The connection itself: credentials and heartbeats.',
  events: 'What the server sends without being asked.',
  notifications: 'The inbox of the user, its settings, and which threads the user follows.',
  presence: 'Who is in a room, and what they send each other.',
  reactions: 'Emoji on comments.',
  rooms: 'A room with its threads.',
  threads: 'Threads: read and write them.',
  users: 'Names and pictures of users.',
} as const;

/** A tag of the AsyncAPI document. */
export type MessageTag = keyof typeof tagTexts;

/** How the AsyncAPI document describes a message. */
interface MessageText {
  readonly tag: MessageTag;
  readonly description: string;
}

/** The description of each message that a client may send, by type. */
export const messageTexts: Readonly<Record<string, MessageText>> = {
  connect: {
    tag: 'connection',
    description:
      'Authenticates a socket that was opened without credentials. It must be the first message and arrive within 5 s.',
  },
  pong: { tag: 'connection', description: 'Answers a `ping`.' },
  'auth.refresh': {
    tag: 'connection',
    description:
      'Replaces the token of the connection by a newer one of the same user. The rights of the new token apply at once.',
  },
  'room.join': {
    tag: 'presence',
    description:
      'Joins a room, and creates it if it is new. A `presence.snapshot` is sent before `ok`, and `presence.joined` to the others.',
  },
  'room.leave': { tag: 'presence', description: 'Leaves a room at once.' },
  'presence.update': {
    tag: 'presence',
    description: 'Replaces the state that the others in the room see of the user.',
  },
  cursor: { tag: 'presence', description: 'Sends the position of the cursor to the others in the room.' },
  typing: {
    tag: 'presence',
    description: 'Tells the others in the room that the user is typing, or has stopped. Repeat it: it ends after 6 s.',
  },
  'room.broadcast': { tag: 'presence', description: 'Sends any JSON to the others in the room.' },
  'p2p.signal': { tag: 'presence', description: 'Sends any JSON to one connection, in a room that both have joined.' },
  'room.get': { tag: 'rooms', description: 'Reads a room and its threads, with their comments if requested.' },
  'thread.get': { tag: 'threads', description: 'Reads a thread and its comments.' },
  'thread.create': { tag: 'threads', description: 'Creates a thread with its first comment.' },
  'thread.update': { tag: 'threads', description: 'Moves a thread, replaces its metadata, or resolves or reopens it.' },
  'thread.resolve': { tag: 'threads', description: 'Resolves a thread.' },
  'thread.reopen': { tag: 'threads', description: 'Reopens a resolved thread.' },
  'comment.create': { tag: 'comments', description: 'Adds a comment to a thread.' },
  'comment.update': {
    tag: 'comments',
    description: 'Changes the text of a comment, and its mentions, metadata and attachments if given.',
  },
  'comment.delete': { tag: 'comments', description: 'Deletes a comment, and its thread if it was the last one.' },
  'comment.report': {
    tag: 'comments',
    description:
      'Reports a comment to the moderators. If the user has reported it before, the first report is the answer.',
  },
  'reaction.add': {
    tag: 'reactions',
    description: 'Adds an emoji to a comment. A reaction that exists already is the answer.',
  },
  'reaction.remove': { tag: 'reactions', description: 'Removes a reaction.' },
  'users.lookup': {
    tag: 'users',
    description: 'Finds the names and pictures of users by id, or by how a name or id begins.',
  },
  'notifications.list': { tag: 'notifications', description: 'Reads the inbox of the user.' },
  'notifications.read': { tag: 'notifications', description: 'Marks notifications as read: those named, or all.' },
  'notification-settings.get': {
    tag: 'notifications',
    description: 'Reads which channels deliver which notifications to the user.',
  },
  'notification-settings.put': {
    tag: 'notifications',
    description: 'Changes which channels deliver which notifications to the user. The answer has all settings.',
  },
  'thread.subscription': { tag: 'notifications', description: 'Reads whether the user follows a thread.' },
  'thread.subscribe': { tag: 'notifications', description: 'Makes the user follow a thread.' },
  'thread.unsubscribe': { tag: 'notifications', description: 'Makes the user follow a thread no longer.' },
  'thread.mute': {
    tag: 'notifications',
    description: 'Keeps all notifications of a thread from the user, mentions too.',
  },
};
