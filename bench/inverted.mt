# Inverted residuals for images of 96 x 96, as bench/vision measures them: a product of one tap to four times the channels, nine
# taps of each channel alone, and a product of one tap back, behind each a batch norm.
param examples = 256  # of a batch

data {
  train = images("imagenet/train", resize = true)
  image : u8[3, 96, 96]
  label : class[100]
}

fn inverted(x, out, stride = 1) {
  many = 4 * size(x, 0)
  wide = relu(batch_norm(conv2d(x, many, 1, bias = false)))
  each = relu(batch_norm(conv2d(wide, many, 3, stride = stride, padding = 1, groups = many, bias = false)))
  thin = batch_norm(conv2d(each, out, 1, bias = false))
  if stride == 1 {
    return x + thin
  } else {
    return thin
  }
}

model {
  x = image / 255 - 0.5
  h = relu(batch_norm(conv2d(x, 32, 3, stride = 2, padding = 1, bias = false)))
  repeat stage in 0..3 {
    h = inverted(h, 24 * 2^stage, stride = 2, name = "stage{stage}.0")
    h = inverted(h, 24 * 2^stage, name = "stage{stage}.1")
  }
  fc = linear(global_avg_pool(h), 100)
}

train {
  loss      = cross_entropy(fc, label)
  optimizer = sgd(0.1, momentum = 0.9, weight_decay = 1e-4)
  precision = bf16
  batch     = examples
}
