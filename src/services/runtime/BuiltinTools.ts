import { Duration, Effect } from "effect"
import { editCorrectionOf, type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { AllowPrivate } from "../platform/PublicNetwork.ts"
import * as EditCorrector from "../tools/builtin/EditCorrector.ts"
import { type Steering, SteeringSettings } from "../tools/builtin/FileChange.ts"
import { glob } from "../tools/builtin/Glob.ts"
import { listDirectory } from "../tools/builtin/ListDirectory.ts"
import { readFile } from "../tools/builtin/ReadFile.ts"
import { readManyFiles } from "../tools/builtin/ReadManyFiles.ts"
import { replace } from "../tools/builtin/Replace.ts"
import { searchFiles } from "../tools/builtin/SearchFiles.ts"
import { shell } from "../tools/builtin/Shell.ts"
import { ShellSettings } from "../tools/builtin/ShellProcess.ts"
import { webFetch } from "../tools/builtin/WebFetch.ts"
import { webSearch } from "../tools/builtin/WebSearch.ts"
import { writeFile } from "../tools/builtin/WriteFile.ts"
import { FileLimits } from "../workspace/FileLimits.ts"

/** The built-in tools for files, commands and pages, as the settings configure them; those that only read come first. */
export const builtinTools = Effect.fnUntraced(function* (
  settings: SettingsFile,
  isTrusted: boolean,
  steeringFiles: Steering["moreFiles"]
) {
  const { allowPrivateNetwork, askForBuildFiles, files, memory, passEnvironment, shellIdle } = withDefaults(settings)
  const shellSettings = yield* ShellSettings
  const correction = editCorrectionOf(settings.editCorrection)
  const inactivity = shellIdle === 0 ? Duration.infinity : Duration.seconds(shellIdle)
  return yield* Effect.all([
    readFile,
    readManyFiles,
    listDirectory,
    glob,
    searchFiles,
    writeFile,
    correction === undefined ? replace : Effect.provide(replace, EditCorrector.layer(settings.model, correction.cache)),
    Effect.provideService(shell, ShellSettings, {
      ...shellSettings,
      inactivity,
      passedVariables: passEnvironment,
      relativePath: isTrusted
    }),
    Effect.provideService(webFetch, AllowPrivate, allowPrivateNetwork),
    webSearch()
  ]).pipe(
    Effect.provideService(FileLimits, files),
    Effect.provideService(SteeringSettings, {
      memoryNames: memory.fileNames,
      buildFiles: askForBuildFiles,
      moreFiles: steeringFiles
    })
  )
})
