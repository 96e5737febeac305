/** The assembled agent in a folder, its errors and its notices. */
export {
  layer,
  make,
  Runtime,
  type AssembledAgent,
  type RuntimeHandlers,
  type RuntimeOptions
} from "../services/runtime/Runtime.ts"
export {
  SessionSelectionError,
  UnknownModelError,
  WorkspaceFolderError,
  type RuntimeError
} from "../services/runtime/RuntimeError.ts"
export { noticeText, type RuntimeNotice } from "../services/runtime/RuntimeNotice.ts"
