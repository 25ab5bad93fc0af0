# ResNet-18 for images of 224 x 224 in 1000 classes. Weights have torchvision's names and shapes, so that
#
#     ./resnet18 predict --load resnet18.safetensors --input photos.npy
#
# takes a state dict of torchvision's resnet18 that was saved as safetensors.
include "residual.mt"
param lr       = 0.1 in 0..10  # highest learning rate
param examples = 256           # of a batch

data {
  train = images("imagenet/train", resize = true)
  test  = images("imagenet/val", resize = true)
  image : u8[3, 224, 224]
  label : class[1000]
}

# A colour as torchvision's weights expect it.
fn channel(image, k, mean, std) {
  return (slice(image, 0, k, k + 1) / 255 - mean) / std
}

model {
  seen = random_flip(image)
  x    = concat([
      channel(seen, 0, 0.485, 0.229),
      channel(seen, 1, 0.456, 0.224),
      channel(seen, 2, 0.406, 0.225),
  ], axis = 0)
  conv1 = conv2d(x, 64, 7, stride = 2, padding = 3, bias = false)
  bn1   = batch_norm(conv1)
  h     = max_pool(relu(bn1), 3, stride = 2, padding = 1)
  repeat stage in 1..5 {
    h = basic(h, 32 * 2^stage, stride = minimum(stage, 2), name = "layer{stage}.0")
    h = basic(h, 32 * 2^stage, name = "layer{stage}.1")
  }
  fc = linear(global_avg_pool(h), 1000)
}

train {
  loss      = cross_entropy(fc, label, label_smoothing = 0.1)
  metric    = accuracy(fc, label)
  optimizer = sgd(one_cycle_lr(lr), momentum = 0.9, nesterov = true, weight_decay = 1e-4)
  precision = bf16
  batch     = examples
  epochs    = 16
}
