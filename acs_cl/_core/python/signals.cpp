#include "python/signals.hpp"

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <utility>

#ifdef _WIN32

namespace acs_cl::signals {  // for systems where a signal's handler never runs in the main thread

bool enter() { return ++inside, true; }
bool handle() { return !PyErr_CheckSignals(); }
void leave() { inside--; }
int pause() { return std::exchange(inside, 0); }
void hook() {}
bool interrupt_waits() { return false; }
long many() { return 0; }
void use_main_thread(unsigned long thread) { main_thread = thread; }

}  // namespace acs_cl::signals

#else

#include <cerrno>
#include <csignal>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

namespace acs_cl::signals {

namespace {

constexpr int LAST = 31;  // of the signals that have names
constexpr std::time_t PATIENCE_S = 2;
constexpr auto HOOK_EVERY = std::chrono::milliseconds(20);

void (*python)(int);  // Python's own handler
volatile std::sig_atomic_t waiting[LAST + 1], some_wait;
volatile std::sig_atomic_t come;
volatile std::sig_atomic_t passed;  // counts calls of Python's handler
volatile std::time_t waits_since;
std::sig_atomic_t seen;
std::chrono::steady_clock::time_point hooked_at;
PyObject *set_in_python;  // `_signal.signal` as Python has it

void pass_on(int number) {
    passed = passed + 1;
    python(number);
}

std::time_t now_s() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

// Ends the program. The driver has not returned since the first Ctrl-C, so nothing else would.
[[noreturn]] void give_up() {
    static const char text[] =
        "acs_cl: interrupted again while a call of the OpenCL driver does not return; "
        "the process ends here\n";
    if (write(2, text, sizeof(text) - 1) < 0) _exit(131);
    _exit(130);
}

void wait_for_the_lock(int number) {
    if (!some_wait) waits_since = now_s();
    else if (number == SIGINT && waiting[SIGINT] && now_s() - waits_since >= PATIENCE_S) give_up();
    waiting[number] = 1;
    some_wait = 1;
}

// In the main thread only: another one would have to ask what that one does, which changes.
extern "C" void on_signal(int number) {
    const int error = errno;
    if (!pthread_equal(pthread_self(), pthread_t(main_thread))) {
        pthread_kill(pthread_t(main_thread), number);
    } else {
        come = come + 1;
        if (inside) wait_for_the_lock(number);
        else pass_on(number);
    }
    errno = error;
}

// Whether a signal reports a fault of the very instruction. It must not be delayed.
bool is_of_the_program(int number) {
    static constexpr int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGABRT,
                                     SIGTRAP, SIGSYS, SIGKILL, SIGSTOP};
    return std::find(std::begin(faults), std::end(faults), number) == std::end(faults);
}

// Finds Python's handler by a signal that means nothing. For Ctrl-C another handler may be in front.
void find_python() {
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *before = module ? PyObject_CallMethod(module, "getsignal", "i", SIGURG) : nullptr;
    PyObject *some = before ? PyObject_GetAttrString(module, "default_int_handler") : nullptr;
    PyObject *set = some ? PyObject_CallMethod(module, "signal", "iO", SIGURG, some) : nullptr;
    struct sigaction now;
    if (set && !sigaction(SIGURG, nullptr, &now)) python = now.sa_handler;
    PyObject *back = set ? PyObject_CallMethod(module, "signal", "iO", SIGURG, before) : nullptr;
    for (PyObject *one : {module, before, some, set, back}) Py_XDECREF(one);
    PyErr_Clear();  // not the main thread, or a handler that is not Python's
}

// Whether our handler may replace the present one. It may if that is Python's, or one for a single signal in front
// of Python's. LLVM, in a driver's compiler, installs such a one, and it would hand that signal to Python past us.
// Any other handler was installed on purpose.
bool may_replace(int number, const struct sigaction &now) {
    if (now.sa_handler == python) return true;
    if (!(now.sa_flags & SA_RESETHAND)) return false;
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *handler = module ? PyObject_CallMethod(module, "getsignal", "i", number) : nullptr;
    const bool is_handled_in_python = handler && PyCallable_Check(handler);
    for (PyObject *one : {module, handler}) Py_XDECREF(one);
    PyErr_Clear();
    return is_handled_in_python;
}

void hook(int number) {
    struct sigaction now;
    if (sigaction(number, nullptr, &now) || !may_replace(number, now)) return;
    now.sa_flags &= ~(SA_RESETHAND | SA_NODEFER | SA_SIGINFO);
    now.sa_handler = on_signal;
    sigaction(number, &now, nullptr);
    seen = passed - 1;  // earlier ones may not have been handled
}

void deliver() {
    some_wait = 0;
    for (int number = 1; number <= LAST; number++) {
        if (!waiting[number]) continue;
        waiting[number] = 0;
        pass_on(number);
    }
}

void hook_all() {
    hooked_at = std::chrono::steady_clock::now();
    if (!python) find_python();
    for (int number = 1; python && number <= LAST; number++)
        if (is_of_the_program(number)) hook(number);
}

// `_signal.signal`, which `signal.signal` calls: the new handler's signals wait from the beginning.
PyObject *set_handler(PyObject *, PyObject *args) {
    PyObject *before = PyObject_Call(set_in_python, args, nullptr);
    if (!before) return nullptr;
    const long number = PyLong_AsLong(PyTuple_GetItem(args, 0));
    if (python && number > 0 && number <= LAST && is_of_the_program(static_cast<int>(number)))
        hook(static_cast<int>(number));
    return before;
}

PyMethodDef set_handler_method = {"signal", set_handler, METH_VARARGS, nullptr};

// Without it, a handler that the program has just installed could run inside of a launch.
void watch_installing() {
    if (set_in_python) return;
    PyObject *module = PyImport_ImportModule("_signal");
    set_in_python = module ? PyObject_GetAttrString(module, "signal") : nullptr;
    PyObject *ours = set_in_python ? PyCFunction_NewEx(&set_handler_method, nullptr, nullptr) : nullptr;
    if (!ours || PyObject_SetAttrString(module, "signal", ours)) PyErr_Clear();
    for (PyObject *one : {module, ours}) Py_XDECREF(one);
}

}  // namespace

void hook() {
    if (python) hook(SIGINT);
    if (std::chrono::steady_clock::now() - hooked_at > HOOK_EVERY) hook_all();
}

bool interrupt_waits() { return waiting[SIGINT] && PyThread_get_thread_ident() == main_thread; }

long many() { return come; }

bool enter() {
    inside++;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return inside > 1 || passed == seen;
}

bool handle() {
    const int many = passed;
    const bool has_raised = PyErr_CheckSignals();
    seen = many;
    return !has_raised;
}

void leave() {
    inside--;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!inside && some_wait) deliver();
}

int pause() {
    int before = inside;
    inside = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (some_wait) deliver();
    return before;
}

void use_main_thread(unsigned long thread) {
    main_thread = thread;
    inside = delayed = 0;
    if (PyThread_get_thread_ident() != thread) return;
    hook_all();
    watch_installing();
}

}  // namespace acs_cl::signals

#endif

namespace acs_cl::signals {

bool may_hear() { return PyThread_get_thread_ident() == main_thread && inside == delayed; }

bool hear() {
    const Paused paused(PyThread_get_thread_ident() == main_thread);
    return handle();
}

Delayed::Delayed() : is_main_(PyThread_get_thread_ident() == main_thread) {
    if (!is_main_) return;
    if (!inside) hook();
    while (!enter()) {
        leave();
        is_main_ = handle();
        if (!is_main_) {
            has_failed_ = true;
            return;
        }
    }
    delayed++;
}

}  // namespace acs_cl::signals
