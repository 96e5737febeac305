/** How the program ends on a signal. A program with work to finish, such as a server, sets it. */
export const shutdown = {
  /** How long it may take, in addition to the time for finalizers. */
  graceMillis: 0,
  /** Whether it goes on when its terminal is closed. */
  ignoresHangup: false
}
