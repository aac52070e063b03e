import * as Type from 'typebox';

/** A time. */
export const dateTime = (description: string) => Type.String({ format: 'date-time', description });

/** A time, as the API sends it. */
export const time = (description: string) => dateTime(`${description} ISO 8601, UTC, with milliseconds.`);

/** A time, or null. */
export const timeOrNull = (description: string) => Type.Union([time(description), Type.Null()]);

/** A text, or null. */
export const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
