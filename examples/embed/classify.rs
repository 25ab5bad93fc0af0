// Says which digit images show, with the library of models/mnist.mt:
//
//     mtc models/mnist.mt --batch 1 --shared --predict-only -o libnet.so
//     rustc --edition 2021 classify.rs -L . -C link-arg=-Wl,-rpath,.
//     ./classify mnist.safetensors digit.pgm
use std::ffi::{c_char, c_int, c_void, CStr, CString};

const PIXELS: usize = 28 * 28;
const CLASSES: usize = 10;

#[link(name = "net")]
extern "C" {
    fn mtc_net_open(weights: *const c_char, net: *mut *mut c_void) -> c_int;
    fn mtc_net_close(net: *mut c_void);
    fn mtc_net_error() -> *const c_char;
    fn mtc_net_run(net: *mut c_void, examples: i64, inputs: *const *const c_void, outputs: *mut f32) -> c_int;
}

fn checked(code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        // The text is the thread's, until its next call.
        _ => Err(unsafe { CStr::from_ptr(mtc_net_error()) }.to_string_lossy().into_owned()),
    }
}

struct Net(*mut c_void);

impl Net {
    fn open(weights: &str) -> Result<Net, String> {
        let path = CString::new(weights).map_err(|error| error.to_string())?;
        let mut net = std::ptr::null_mut();
        checked(unsafe { mtc_net_open(path.as_ptr(), &mut net) })?;
        Ok(Net(net))
    }

    // `&mut`: one thread at a time.
    fn run(&mut self, image: &[u8; PIXELS]) -> Result<[f32; CLASSES], String> {
        let inputs = [image.as_ptr() as *const c_void];
        let mut scores = [0.0; CLASSES];
        checked(unsafe { mtc_net_run(self.0, 1, inputs.as_ptr(), scores.as_mut_ptr()) })?;
        Ok(scores)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        unsafe { mtc_net_close(self.0) }
    }
}

fn read_image(path: &str) -> Result<[u8; PIXELS], String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    bytes.strip_prefix(b"P5\n28 28\n255\n").and_then(|pixels| pixels.try_into().ok()).ok_or(format!("{path}: is no PGM of 28 x 28"))
}

fn classify(arguments: &[String]) -> Result<(), String> {
    let (weights, paths) = arguments.split_first().ok_or("usage: classify WEIGHTS IMAGE...")?;
    let mut net = Net::open(weights)?;
    for path in paths {
        let scores = net.run(&read_image(path)?)?;
        let best = (1..CLASSES).fold(0, |best, k| if scores[k] > scores[best] { k } else { best });
        println!("{path}: {best} ({:.3})", scores[best]);
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Err(message) = classify(&arguments) {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
