/** What a user token allows: to read, to take part, or to change and decide everything. */
export type Role = 'viewer' | 'member' | 'moderator';
