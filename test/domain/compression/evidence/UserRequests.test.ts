import { assert, describe, it } from "@effect/vitest"
import { partnersIn } from "../../../../src/domain/compression/AnsweredCalls.ts"
import { constraintsIn, requestSpans, witnessOf } from "../../../../src/domain/compression/evidence/UserRequests.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { type Author, type Entry, entryId } from "../../../../src/domain/conversation/Conversation.ts"
import { entryOf } from "../../../support/entries.ts"

const words = "Never touch src/legacy."

const saidBy = (n: number, author?: Author, content = user(text(`Hello. ${words}`))) =>
  entryOf(n, content, author === undefined ? {} : { author })

const answersTo = (asked: Entry, answered: Entry) =>
  requestSpans(answered, (part) => partnersIn([asked, answered])(1, part)?.part)

it("only the user's own message, named by its id, witnesses the user's words", () => {
  const authors = ["program", "summary", "environment"] as const
  const witness = witnessOf([
    saidBy(1),
    saidBy(2, undefined, model(text(words))),
    ...authors.map((author, at) => saidBy(3 + at, author)),
    saidBy(6, undefined, user(text("Another message.")))
  ])
  const seen = [1, 2, 3, 4, 5, 6, 7].map((n) => witness({ entry: entryId(n), text: words }))
  assert.deepStrictEqual(seen, [true, false, false, false, false, false, false])
  assert.isFalse(witness({ entry: entryId(1), text: "Always touch src/legacy." }))
})

describe("the question of an answer", () => {
  it.each([
    ['User has answered your questions: "Which rig?"="No rig". You can now continue', "Which rig?", "No rig"],
    ["Colour: user selected: 2. Blue", "Colour", "Blue"],
    ['{"answers":[{"question":"Which one?","answer":"that one"}]}', "Which one?", "that one"],
    ['{"answers":{"0":"that one"}}', "Which tool?", "that one"],
    ['{"answers": {"1": "that one"}}', "Which day?", "that one"],
    ['{"answers":{"day":{"answers":["that one"]}}}', "Which day?", "that one"],
    ['{"answers":{"2":"that one"}}', "", "that one"]
  ])("is found: %s", (output, question, answer) => {
    const questions = [
      { question: "Which tool?" },
      { id: output.includes("day") ? "day" : undefined, question: "Which day?" }
    ]
    const asked = saidBy(1, undefined, model(call("ask_user", { questions }, "c")))
    const answered = saidBy(2, undefined, user(response("ask_user", { output }, "c")))
    const spans = answersTo(asked, answered)
    assert.deepStrictEqual(
      spans.map((span) => [span.text, span.question]),
      [[answer, question]]
    )
  })
})

it("the only question of a call is that of its answer (Pi)", () => {
  const asked = saidBy(1, undefined, model(call("question", { question: "Which index?", options: [] }, "c")))
  const answered = saidBy(2, undefined, user(response("question", { output: "User selected: 2. trigram" }, "c")))
  assert.deepStrictEqual(
    answersTo(asked, answered).map((span) => [span.text, span.question]),
    [["trigram", "Which index?"]]
  )
})

describe("the constraints in a request", () => {
  const constraints = (request: string) =>
    requestSpans(saidBy(1, undefined, user(text(request)))).flatMap((span) =>
      constraintsIn(span).map(({ end, start, text }) => {
        assert.strictEqual(request.slice(start, end), text)
        return text
      })
    )

  it.each([
    ["Fix it. Never touch src/legacy.", ["Never touch src/legacy."]],
    ["Please keep the old names! Then go on.", ["Please keep the old names!"]],
    ["Could you make sure that the tests pass?", ["Could you make sure that the tests pass?"]],
    ["And can we keep a.ts as it is?", ["And can we keep a.ts as it is?"]],
    ["That should have lines attribution or?", []],
    ["question: doesn't git only know text files?", []],
    ["\u5fc5\u987b\u8fd9\u6837\u5417\uff1f", []],
    ["It always returns a number that stands for the amount of lines in a file of the project.", []],
    ["Always return a number.", ["Always return a number."]],
    ["You must do all of this:\nfirst this", []],
    ["It said\n```\nyou must not\n```\nError: must be set\nerror: you must log in", []],
    ["  at must (a.ts:1)\nError: value must be set", []],
    [
      "非公開コードは使用しないこと。契約を再発明しないでください。直してください。",
      ["非公開コードは使用しないこと。", "契約を再発明しないでください。"]
    ],
    ["não use sudo. instale com o brew", ["não use sudo."]],
    ["No toques la base de datos. Sigue.", ["No toques la base de datos."]],
    ["Jangan ubah tabel pos. Lanjutkan.", ["Jangan ubah tabel pos."]],
    ["Не меняй API. Продолжай.", ["Не меняй API."]],
    ["테스트를 반드시 통과시켜. 계속해.", ["테스트를 반드시 통과시켜."]],
    ["Die alte Tabelle darf bleiben. Mach weiter.", ["Die alte Tabelle darf bleiben."]],
    ["왜 테스트가 실패하는지 말해줘.", []],
    ["무엇이 바뀌었는지 말씀해 주세요.", []],
    ["로그에 있는 절대 경로를 보여줘.", []],
    ["금지어 목록을 보여줘.", []],
    ["페이지마다 링크를 세어줘.", []],
    ["起動しないことがあるので見てください。", []],
    ["絶対パスを表示してください。", []],
    ["Я только что обновил ветку.", []],
    ["Это не такой большой файл.", []],
    ["你要不要先看一下日志。", []],
    ["不要紧。", []],
    ["Deve ser o cache do navegador.", []],
    ["Acho que deve ser o cache.", []],
    ["Deve essere la cache del browser.", []],
    ["Debe ser la caché del navegador.", []],
    ["ファイルを消さないで。", ["ファイルを消さないで。"]],
    ["このファイルを変更してはいけません。", ["このファイルを変更してはいけません。"]],
    ["이 파일을 건드리지 마.", ["이 파일을 건드리지 마."]],
    ["이 파일을 지우지 마세요.", ["이 파일을 지우지 마세요."]],
    ["이 파일을 지우지 말고 옮겨줘.", ["이 파일을 지우지 말고 옮겨줘."]],
    ["이 파일을 지우면 안 돼.", ["이 파일을 지우면 안 돼."]],
    ["Не переименовывай файлы.", ["Не переименовывай файлы."]],
    ["Не переписывайте историю.", ["Не переписывайте историю."]],
    ["O nome deve ser único.", ["O nome deve ser único."]],
    ["只能用中文。", ["只能用中文。"]],
    ["금지 사항이다.", ["금지 사항이다."]]
  ])("%s", (request, expected) => assert.deepStrictEqual(constraints(request), expected))

  it("a long run of marks is no work", () => {
    assert.deepStrictEqual(constraints(`Never push.\n${".".repeat(20_000)} x\nNever pull.`), [
      "Never push.",
      "Never pull."
    ])
  })
})
