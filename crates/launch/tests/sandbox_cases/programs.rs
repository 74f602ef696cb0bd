//! Ordinary programs execute as they are.

use std::path::Path;

use steelyard_model::SandboxSpec;

use super::Case;
use crate::jail::Jail;

pub(super) const CASES: &[(&str, Case)] = &[
    ("a_shell_pipeline_works", a_shell_pipeline_works),
    ("python_works", python_works),
    ("java_works", java_works),
    ("a_compiler_works", a_compiler_works),
];

fn jail() -> Jail {
    let mut jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.processes = 256;
    jail
}

fn missing(program: &str) -> bool {
    let missing = !Path::new(program).exists();
    if missing {
        println!("skipped: needs `{program}`");
    }
    missing
}

fn a_shell_pipeline_works() {
    jail().execute(&["/bin/sh", "-c", "seq 10 | sort -rn | head -1 > /tmp/x && cat /tmp/x"]).must_say("10\n");
}

fn python_works() {
    if missing("/usr/bin/python3") {
        return;
    }
    let program = "import os, threading, subprocess, tempfile, multiprocessing as m, socket\n\
                   with tempfile.TemporaryFile() as f: f.write(b'x')\n\
                   t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n\
                   print(subprocess.run(['/bin/echo', 'child'], capture_output=True, text=True).stdout)\n\
                   q = m.get_context('fork').Queue(); q.put(os.cpu_count()); print('cpus', q.get() > 0)\n\
                   a, b = socket.socketpair(); a.send(b'y'); print(b.recv(1), os.getcwd())\n";
    let ended = jail().execute(&["/usr/bin/python3", "-c", program]);
    ended.must_say("/box");
    for said in ["thread", "child", "cpus True"] {
        ended.must_say(said);
    }
}

fn java_works() {
    if missing("/usr/bin/java") {
        return;
    }
    let jail = jail();
    jail.execute(&["/usr/bin/java", "-version"]).must_say("openjdk");
    if missing("/usr/bin/javac") {
        return;
    }
    let script = "cat > Main.java <<'E'\n\
                  public class Main { public static void main(String[] a) throws Exception {\n\
                  Thread t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join();\n\
                  System.out.println(Runtime.getRuntime().availableProcessors() > 0); } }\n\
                  E\n\
                  java Main.java";
    jail.execute(&["/bin/sh", "-c", script]).must_say("thread\ntrue");
}

fn a_compiler_works() {
    if missing("/usr/bin/gcc") {
        return;
    }
    let script = "echo 'int printf(const char*,...); int main(){return printf(\"made\")<0;}' > a.c && gcc a.c && ./a.out";
    jail().execute(&["/bin/sh", "-c", script]).must_say("made");
}
