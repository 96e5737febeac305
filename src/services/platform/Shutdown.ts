/**
 * How long the program may take to end after a signal, in addition to the time for finalizers. A program with work to
 * finish, such as a server, sets it.
 */
export const shutdown = { graceMillis: 0 }
