/**
 * The ids that the server makes, and those that clients choose for threads and comments: 1 to 64 of `A-Z a-z 0-9 _ -`.
 */
export const ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
