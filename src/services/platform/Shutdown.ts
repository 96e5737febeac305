/**
 * How long this program may take to end after a signal, beside the time that finalizers get. A program that has work to finish
 * sets it, as a server does.
 */
export const shutdown = { graceMillis: 0 }
