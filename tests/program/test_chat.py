"""forerun chat, in a terminal and in a pipe."""

import json
import re
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import QUICK, ProgramTest, model, run
from terminal import Terminal

SMOLLM2 = model("smollm2")
GREEDY = ["--temp", "0"]
CHAT = ["chat", "-m", SMOLLM2, *QUICK, *GREEDY]
SHORT = [*CHAT, "-n", "3"]
PROMPT = r"> \Z"
PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"
PASTES_ON, PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
UP = "\x1b[A"


class ChatTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "chat.json"

    def terminal(self, *arguments) -> Terminal:
        terminal = Terminal(*arguments)
        self.addCleanup(terminal.kill)
        terminal.wait_for(PROMPT)
        return terminal

    def say(self, terminal: Terminal, text: str) -> str:
        """What is printed until the next prompt."""
        terminal.send(text + "\n")
        return terminal.wait_for(r"\][\r\n]+.*" + PROMPT)

    def messages(self, terminal: Terminal) -> list[str]:
        """What the user said so far."""
        terminal.send(f"/save {self.file}\n")
        terminal.wait_for(r"\[saved [^\]]*\][\r\n]+.*" + PROMPT)
        return self.saved()

    def saved(self, role: str = "user") -> list[str]:
        return [m["content"] for m in json.loads(self.file.read_text())["messages"] if m["role"] == role]

    def piped(self, *lines: str, arguments=SHORT) -> subprocess.CompletedProcess:
        return self.succeed(*arguments, stdin="".join(line + "\n" for line in lines).encode())


class Conversation(ChatTest):
    def test_remembers(self):
        result = self.piped("My name is Ada.", "What is my name?", arguments=[*CHAT, "-n", "30"])
        first, second = re.findall(r"answer: (\d+) tokens?", result.stderr.decode())
        self.assertGreater(int(first) * int(second), 0)
        statistics = re.findall(r"\[prompt: (\d+) tokens?( \(and (\d+) from before\))?", result.stderr.decode())
        self.assertEqual(len(statistics), 2)
        self.assertGreater(int(statistics[1][2]), 20)

    def test_a_message_that_never_fits_does_not_end_it(self):
        result = self.piped(
            "One.", "word " * 500, "Hello", f"/save {self.file}", arguments=[*CHAT, "-n", "5", "-c", "256"]
        )
        self.assertRegex(
            result.stderr.decode(), r"\nforerun: the message alone takes \d+ tokens and the context holds 256: [^\n]*\n"
        )
        self.assertEqual(self.saved(), ["One.", "Hello"])

    def test_old_turns_make_room(self):
        said = [f"{i}: " + "word " * 30 for i in range(9)]
        result = self.piped(
            *said, f"/save {self.file}", arguments=[*CHAT, "-n", "20", "-c", "256", "--system", "Be brief.", "--ignore-eos"]
        )
        lines = result.stderr.decode()
        self.assertEqual(len(re.findall("answer: 20 tokens", lines)), len(said))
        forgotten = re.findall(r"\[forgot the (?:(\d+) )?oldest turns? to make room: [^\n]*/reset[^\n]*\]\n", lines)
        self.assertGreater(len(forgotten), 1)
        # Reading all afresh is not to happen in every turn.
        self.assertLess(len(forgotten), len(said) / 2)
        n = sum(int(count or 1) for count in forgotten)
        self.assertEqual(self.saved(), said[n:])
        self.assertEqual(json.loads(self.file.read_text())["system"], "Be brief.")

    def test_an_answer_that_fills_the_context_is_no_dead_end(self):
        result = self.piped("Hello", "Hello again", arguments=[*CHAT, "-c", "64", "--ignore-eos"])
        lines = result.stderr.decode()
        self.assertEqual(lines.count("context full"), 2)
        self.assertIn("[forgot the oldest turn to make room", lines)
        self.assertNotIn("forerun:", lines)


class Commands(ChatTest):
    def errors(self, *lines: str) -> list[str]:
        return re.findall("^forerun: (.*)$", self.piped(*lines).stderr.decode(), re.MULTILINE)

    def test_what_is_no_command_goes_nowhere(self):
        errors = self.errors("/foo", "/usr/bin is a folder", "/", "/exit now", "/save", "/stats maybe", "/load  ", f"/save {self.file}")
        self.assertEqual(errors[:3], [f"no command /{name}; /help shows all" for name in ("foo", "usr/bin", "")])
        self.assertEqual(errors[3], "/exit stands alone: nothing may follow it")
        self.assertEqual(errors[4], "/save needs more: /save FILE")
        self.assertEqual(errors[5], "/stats takes on or off, not 'maybe'")
        self.assertEqual(errors[6], "/load needs more: /load FILE")
        self.assertEqual(len(errors), 7)
        self.assertEqual(self.saved(), [])

    def test_two_slashes_are_a_message(self):
        self.piped("//usr/bin is a folder", '"""', "/exit", '"""', f"/save {self.file}")
        self.assertEqual(self.saved(), ["/usr/bin is a folder", "/exit"])

    def test_help_shows_all(self):
        shown = self.piped("/help").stderr.decode()
        self.assertIn(shown, self.succeed("chat", "--help").stdout.decode())
        for name in ("/reset", "/regen", "/system", "/set", "/save", "/load", "/stats", "/help", "/exit", '"""', "//TEXT"):
            self.assertIn(f"\n  {name}", "\n" + shown)

    def test_leaving(self):
        for line in ("/exit", "/quit", "/exit "):
            self.assertNotIn("answer", self.piped(line, "Hello").stderr.decode())

    def test_save_and_load(self):
        self.piped("/system Be brief.", "My name is Ada.", "Hello", f"/save {self.file}")
        first = self.file.read_text()
        self.assertEqual(json.loads(first)["forerun_chat"], 1)
        self.assertEqual(json.loads(first)["system"], "Be brief.")
        other = self.file.with_name("other.json")
        lines = self.piped("lost", f"/load {self.file}", f"/save {other}", "And now?").stderr.decode()
        self.assertEqual(other.read_text(), first)
        # The prompt has the turns that were loaded.
        prompts = [int(n) + int(m or 0) for n, m in re.findall(r"prompt: (\d+) tokens?(?: \(and (\d+))?", lines)]
        self.assertGreater(prompts[1], prompts[0] + 20)

    def test_a_bad_file_changes_nothing(self):
        bad = self.file.with_name("bad.json")
        bad.write_text('{"forerun_chat": 1, "system": "no", "messages": [{"role": "user", "content": "half a turn"}]}')
        newer = self.file.with_name("newer.json")
        newer.write_text('{"forerun_chat": 2}')
        missing = self.file.with_name("missing.json")
        errors = self.errors("Hello", f"/load {bad}", f"/load {newer}", f"/load {missing}",
                             f"/save {self.file.parent}/none/chat.json", f"/save {self.file}")  # fmt: skip
        self.assertEqual(len(errors), 4)
        for error, expected in zip(errors, ("damaged", "version 2", "there is no file", "none/chat.json")):
            self.assertIn(expected, error)
        self.assertEqual(self.saved(), ["Hello"])
        self.assertEqual(json.loads(self.file.read_text())["system"], "")

    def test_system(self):
        lines = self.piped("/system", "/system You are a pirate.", "/system", "Hello", "/reset", f"/save {self.file}").stderr.decode()
        self.assertTrue(lines.startswith("[no system message]\n[You are a pirate.]\n"), lines)
        self.assertEqual(json.loads(self.file.read_text()), {"forerun_chat": 1, "system": "You are a pirate.", "messages": []})
        self.assertEqual(self.piped("/system One.", '/system ""', "/system").stderr, b"[no system message]\n")
        # The model reads it.
        counts = [
            re.search(r"prompt: (\d+) tokens?", self.piped(f"/system {text}", "Hello").stderr.decode())[1]
            for text in ("You are a pirate.", "Be.")
        ]
        self.assertNotEqual(*counts)

    def test_regen(self):
        sampled = [*CHAT, "--temp", "2", "--top-p", "1", "--min-p", "0", "--seed", "1", "-n", "20"]
        said = ["/regen", "Tell me a story.", f"/save {self.file}"]
        lines = self.piped(*said, arguments=sampled).stderr.decode()
        self.assertIn("forerun: there is no answer yet", lines)
        first = self.saved("assistant")
        self.piped(*said, "/regen", f"/save {self.file}", arguments=sampled)
        self.assertEqual(self.saved(), ["Tell me a story."])
        # The seed is another one: twenty tokens at this temperature do not repeat by chance.
        self.assertNotEqual(self.saved("assistant"), first)
        self.piped(*said[1:], arguments=sampled)
        self.assertEqual(self.saved("assistant"), first)
        self.assertIn("the temperature is 0", self.piped("Hello", "/regen").stderr.decode())

    def test_set(self):
        result = self.piped("/set", "/set temp 0.25", "/set n 2", "/set seed 7", "/set temp", "/set seed", "/set n",
                            "Tell me a story.", "/set seed random", "/set seed")  # fmt: skip
        shown = re.findall(r"^  (\S+) +(\S+) ", result.stderr.decode(), re.MULTILINE)
        self.assertEqual(
            shown[:7],
            [("temp", "0"), ("top-k", "40"), ("top-p", "0.95"), ("min-p", "0.05"), ("repeat-penalty", "1"), ("n", "3"), ("seed", "random")],
        )  # fmt: skip
        self.assertEqual(shown[7:], [("temp", "0.25"), ("seed", "7"), ("n", "2"), ("seed", "random")])
        self.assertIn("answer: 2 tokens", result.stderr.decode())

    def test_set_has_the_rules_of_the_flags(self):
        wrong = ["temp -1", "temp nan", "temp warm", "top-k -1", "top-p 0", "top-p 1.5", "min-p 2", "repeat-penalty 0", "seed -2", "n -2", "n 1.5"]
        errors = self.errors(*[f"/set {setting}" for setting in wrong], "/set colour red", "/set")
        self.assertEqual(len(errors), len(wrong) + 1, errors)
        self.assertIn("there is no setting colour; there are temp, top-k,", errors[-1])
        self.assertEqual(self.piped("/set").stderr, self.piped(*[f"/set {setting}" for setting in wrong], "/set").stderr.split(b"\n", len(wrong))[-1])

    def test_stats(self):
        lines = self.piped("/stats", "/stats off", "Hello", "/stats", "/stats on", "Hello", "/stats").stderr.decode()
        pattern = r"\[turns: (\d+) \| context: (\d+) of 8192 tokens \| answers: (\d+) tokens?, ([\d.]+) per second \| drafted: (\d+) tokens?, .*'/stats (\w+)'"
        found = re.findall(pattern, lines)
        self.assertEqual([f[0] for f in found], ["0", "1", "2"])
        self.assertEqual([f[2] for f in found], ["0", "3", "6"])
        self.assertEqual([f[5] for f in found], ["off", "on", "off"])
        self.assertLess(int(found[1][1]), int(found[2][1]))
        self.assertEqual(lines.count("[prompt: "), 1)


class Messages(ChatTest):
    def test_marks_in_a_pipe(self):
        self.piped("one\\", "two", '"""', "three", "", "four\\", '"""', "five\r", f"/save {self.file}")
        self.assertEqual(self.saved(), ["one\ntwo", "three\n\nfour\\", "five"])
        # The end of the input ends the message.
        result = self.piped('"""Hello', "there")
        self.assertIn("answer: ", result.stderr.decode())

    def test_marks_in_a_terminal(self):
        terminal = self.terminal(*SHORT)
        terminal.send("one\\\n")
        terminal.wait_for(r"\. \Z")
        self.say(terminal, "two")
        for line in ('"""', "", "three"):
            terminal.send(line + "\n")
            terminal.wait_for(r"\. \Z")
        self.say(terminal, '"""')
        terminal.send("given up\\\n")
        terminal.wait_for(r"\. \Z")
        terminal.send("\x03")
        terminal.wait_for(PROMPT)
        self.assertEqual(self.messages(terminal), ["one\ntwo", "\nthree"])
        # The history has whole messages: the one before /save, and the one before that.
        self.say(terminal, UP + UP)
        self.say(terminal, UP * 4)
        self.assertEqual(self.messages(terminal), ["one\ntwo", "\nthree", "\nthree", "one\ntwo"])

    def test_a_paste_is_one_message(self):
        terminal = self.terminal(*SHORT)
        terminal.send(PASTE + "one\rtwo\r\t/three\x07\r" + PASTE_END)
        # Shown in lines, as it was.
        terminal.wait_for(r"one[^\w]*\n[^\w]*two[^\w]*\n[^\w]*/three")
        self.say(terminal, "four")
        self.assertEqual(self.messages(terminal), ["one\ntwo\n\t/three\nfour"])
        self.say(terminal, UP + UP)
        self.assertEqual(self.messages(terminal), ["one\ntwo\n\t/three\nfour"] * 2)

    def test_a_long_paste(self):
        terminal = self.terminal(*SHORT)
        lines = [f"line {i} of a long text" for i in range(60)]
        terminal.send(PASTE + "\r".join(lines) + PASTE_END)
        self.say(terminal, "")
        self.assertEqual(self.messages(terminal), ["\n".join(lines)])

    def test_interrupt_stops_the_answer_only(self):
        terminal = self.terminal(*CHAT, "--ignore-eos")
        terminal.send("given up")
        terminal.wait_for("given up")
        for _ in range(2):  # at the prompt: the line is given up, and a new one begins
            terminal.send("\x03")
            terminal.wait_for(r"\n[^\n]*" + PROMPT)
        terminal.send("Tell me a long story.\n")
        terminal.wait_for(r"story\.\r\n[^>\x1b]{30}")
        terminal.send("\x03")
        terminal.wait_for("interrupted]")
        terminal.wait_for(PROMPT)
        terminal.send("/help\n")
        terminal.wait_for("/reset")
        terminal.send("/exit\n")
        self.assertEqual(terminal.close(), 0)

    def test_what_is_typed_during_an_answer_waits(self):
        terminal = self.terminal(*CHAT, "--ignore-eos")
        terminal.send("Tell me a long story.\n")
        terminal.wait_for(r"story\.\r\n[^>\x1b]{10}")
        terminal.send("Zebra ")
        terminal.send(PASTE + "one\rtwo" + PASTE_END)
        answer = terminal.wait_for("(?s).{200}")
        terminal.process.send_signal(signal.SIGINT)  # the key would drop what was typed
        answer += terminal.wait_for(r"interrupted\]")
        self.assertNotIn("Zebra", answer)
        self.assertNotIn("[200~", answer)
        terminal.wait_for(r"> [^\n]*Zebra [^\n]*one[^\n]*\n[^\n]*two")
        terminal.send("!\n")
        terminal.wait_for(r"!\r\n[^\x1b]{10}")
        terminal.send("\x03")
        terminal.wait_for(r"interrupted\][\r\n]+.*" + PROMPT)
        self.assertEqual(self.messages(terminal)[1:], ["Zebra one\ntwo!"])

    def test_the_terminal_is_left_as_it_was(self):
        def leave_by_signal(number: int):
            return lambda terminal: terminal.process.send_signal(number)

        ways = {
            "/exit": (lambda terminal: terminal.send("/exit\n"), 0),
            "Ctrl-D": (lambda terminal: terminal.send("\x04"), 0),
            "SIGTERM": (leave_by_signal(signal.SIGTERM), -signal.SIGTERM),
            "SIGHUP": (leave_by_signal(signal.SIGHUP), -signal.SIGHUP),
        }
        for name, (leave, status) in ways.items():
            for is_answering in (False, True):
                if is_answering and status == 0:
                    continue
                terminal = Terminal(*CHAT, "--ignore-eos")
                self.addCleanup(terminal.kill)
                self.assertIn(PASTES_ON, terminal.wait_for(PROMPT), name)
                if is_answering:
                    terminal.send("Tell me a long story.\n")
                    terminal.wait_for(r"story\.\r\n[^>\x1b]{10}")
                self.assertNotEqual(terminal.mode(), terminal.mode_before)
                leave(terminal)
                self.assertEqual(terminal.wait(), status, name)
                self.assertEqual(terminal.mode(), terminal.mode_before, name)
                self.assertRegex(terminal.output, re.escape(PASTES_OFF), name)


class Editing(ChatTest):
    def test_line_editing(self):
        terminal = self.terminal(*SHORT)
        terminal.send("/halp\x08\x08\x08elp\n")  # backspace
        terminal.wait_for("/reset")
        terminal.wait_for(PROMPT)
        terminal.send(UP + "\n")  # the line before again
        terminal.wait_for("/reset")
        terminal.wait_for(PROMPT)
        terminal.send("\x04")
        self.assertEqual(terminal.close(), 0)

    def test_keys_go_by_what_a_reader_takes_for_one_character(self):
        family, flag, thumb = "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd"
        left, right, delete = "\x1b[D", "\x1b[C", "\x1b[3~"
        terminal = self.terminal(*SHORT)
        for one in ("e\u0301", family, flag, thumb, "\u2764\ufe0f"):
            self.say(terminal, f"a{one}\x7fb")
            self.say(terminal, f"a{one}c{left}{left}b")
            self.say(terminal, f"a{one}c\x01{right}{right}b")
            self.say(terminal, f"a{one}c\x01{right}{delete}b")
            self.assertEqual(self.messages(terminal), ["ab", f"ab{one}c", f"a{one}bc", "abc"])
            terminal.send("/reset\n")
            terminal.wait_for(PROMPT)


if __name__ == "__main__":
    unittest.main()
