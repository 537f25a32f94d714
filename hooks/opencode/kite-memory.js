// Passes what a person asks to Kite Memory, and the notes that it finds to the model. Silent where no daemon runs.
import { spawn } from "node:child_process"

const COMMAND = "PATH=\"$PATH:$HOME/.local/bin\" kmem-hook --agent opencode"
const LIMIT_MS = 5000

const noteFor = (input) =>
  new Promise((resolve) => {
    const child = spawn(COMMAND, { shell: true, timeout: LIMIT_MS, stdio: ["pipe", "pipe", "ignore"] })
    let printed = ""
    child.stdout.setEncoding("utf8").on("data", (piece) => (printed += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(input))
  })

export const KiteMemory = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, { message, parts }) => {
    const asked = parts.filter((part) => part.type === "text" && !part.synthetic)
    if (asked.length === 0) return
    const text = await noteFor({
      hook_event_name: "UserPromptSubmit",
      session_id: sessionID,
      prompt_id: message.id,
      cwd: directory,
      prompt: asked.map((part) => part.text).join("\n"),
    })
    if (!text) return
    const id = `${parts.at(-1).id}z` // parts are read in the order of their ids
    parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
  },
})
