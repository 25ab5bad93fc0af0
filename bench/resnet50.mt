# ResNet-50 for images of 224 x 224 in 1000 classes, as bench/vision measures it: a block has a product of one tap, one of nine
# with a quarter of the channels, and one of one tap, behind each a batch norm.
param examples = 128  # of a batch

data {
  train = images("imagenet/train", resize = true)
  image : u8[3, 224, 224]
  label : class[1000]
}

fn bottleneck(x, width, stride = 1) {
  narrow = relu(batch_norm(conv2d(x, width, 1, bias = false)))
  middle = relu(batch_norm(conv2d(narrow, width, 3, stride = stride, padding = 1, bias = false)))
  wide   = batch_norm(conv2d(middle, 4 * width, 1, bias = false))
  if stride != 1 or size(x, 0) != 4 * width {
    shortcut = batch_norm(conv2d(x, 4 * width, 1, stride = stride, bias = false))
    return relu(wide + shortcut)
  } else {
    return relu(wide + x)
  }
}

fn blocks(x, width, count, stride) {
  h = bottleneck(x, width, stride = stride, name = "block0")
  repeat block in 1..count {
    h = bottleneck(h, width, name = "block{block}")
  }
  return h
}

model {
  x    = image / 255 - 0.5
  stem = relu(batch_norm(conv2d(x, 64, 7, stride = 2, padding = 3, bias = false)))
  h    = max_pool(stem, 3, stride = 2, padding = 1)
  h    = blocks(h, 64, 3, 1, name = "layer1")
  h    = blocks(h, 128, 4, 2, name = "layer2")
  h    = blocks(h, 256, 6, 2, name = "layer3")
  h    = blocks(h, 512, 3, 2, name = "layer4")
  fc   = linear(global_avg_pool(h), 1000)
}

train {
  loss      = cross_entropy(fc, label)
  optimizer = sgd(0.1, momentum = 0.9, weight_decay = 1e-4)
  precision = bf16
  batch     = examples
}
